package runmap

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

const keyed = "version: 1\nkey: x\ncolumns:\n  - {name: y, call: a.get, with: {x: \"${row.x}\"}}\n"

// asksExtend leaves an extension as a request does.
func (w *world) asksExtend(id, key, rows string) {
	w.t.Helper()
	err := errors.Join(w.Store.Blobs.Put(w.t.Context(), "uploads/"+key+".csv", strings.NewReader(rows)), active.Add(w.t.Context(), w.Store.Table, id))
	if err == nil {
		_, err = run.AskExtend(w.t.Context(), w.Store, id, key, sheet.More{Input: key + ".csv", Source: sheet.Source{Object: "uploads/" + key + ".csv"}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// through plays the machine: every shard of the plan to its end, and the finish.
func (w *world) through(id string) (plan PlanResult, fin FinishResult) {
	w.t.Helper()
	for range 2 { // a plan may be delivered twice
		w.must(`{"op":"plan","run":"`+id+`"}`, &plan)
	}
	for _, s := range plan.Shards {
		var slice SliceResult
		w.must(`{"op":"slice","run":"`+id+`","shard":`+strconv.Itoa(s.Shard)+`,"slices":0}`, &slice)
	}
	w.must(`{"op":"finish","run":"`+id+`"}`, &fin)
	return plan, fin
}

// The execution of a run that is extended begins with sealing the new rows, and works their shards alone. The journals of the old
// ones have expired by then.
func TestX4AnExtensionIsTheFirstThingThatItsExecutionDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		w := newWorld(t, p)
		w.registerMap("r", keyed, "x\n1\n2\n")
		w.through("r")
		time.Sleep(1000 * time.Hour)
		w.asksExtend("r", "k", "x\n2\n3\n")
		plan, fin := w.through("r")
		if len(plan.Shards) != 1 || plan.Shards[0].Shard != 1 || fin.Status != sheet.Completed || fin.Completed != 3 || p.asked != 3 {
			t.Errorf("%+v, %+v, %d calls", plan, fin, p.asked)
		}
		if got := w.text("runs/r/result.csv"); got != "x,y\n1,y\n2,y\n3,y\n" {
			t.Errorf("%q", got)
		}
		if rec := w.record("r"); rec.Execution() != 1 || rec.Extension.Rows != 1 || w.listed() != 0 || len(w.ends()) != 2 {
			t.Errorf("%+v, %d listed, %d ends", rec.Extension, w.listed(), len(w.ends()))
		}
	})
}

// What cannot be taken leaves a run as it was, be it complete or paused: its execution ends, and is not its failure.
func TestX4ARefusedExtensionLeavesTheRunAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &provider{holds: 1, until: time.Hour})
		w.Settings.Concurrency = 1
		w.registerMap("paused", keyed, "x\n1\n")
		w.must(`{"op":"plan","run":"paused"}`, &PlanResult{})
		w.must(`{"op":"slice","run":"paused","shard":0,"slices":0}`, &SliceResult{})
		if err := run.Pause(t.Context(), w.Store, "paused", "lunch"); err != nil {
			t.Fatal(err)
		}
		w.must(`{"op":"slice","run":"paused","shard":0,"slices":1}`, &SliceResult{})
		w.registerMap("completed", keyed, "x\n1\n")
		w.through("completed")
		for _, id := range []string{"paused", "completed"} {
			w.asksExtend(id, "k", "x\n\"\"\n")
			if plan, fin := w.through(id); len(plan.Shards) != 0 || string(fin.Status) != id || fin.Outcome != "done" {
				t.Errorf("%+v, %+v", plan, fin)
			}
			// Nor is it where the function itself cannot do it, however often that is told.
			w.asksExtend(id, "l", "x\n2\n")
			for range 2 {
				var failed FailResult
				w.must(`{"op":"fail","run":"`+id+`","error":"Runtime.ExitError","cause":"killed"}`, &failed)
				if rec := w.record(id); string(failed.Status) != id || string(rec.Status) != id || !strings.Contains(rec.Extension.Error, "Runtime.ExitError: killed") || rec.Error != "" {
					t.Errorf("%+v, %s %+v", failed, rec.Status, rec.Extension)
				}
			}
		}
		if rec := w.record("paused"); rec.Pause.Reason != "lunch" || w.listed() != 1 {
			t.Errorf("%+v, %d listed", rec.Pause, w.listed())
		}
	})
}

// An extension may be asked for while the execution before tells the run's end: the run stays on the list that the reaper looks at.
func TestX4AnEndThatIsToldLateDoesNotLoseAnExtension(t *testing.T) {
	w := newWorld(t, &provider{})
	w.registerMap("r", keyed, "x\n1\n")
	w.through("r")
	w.asksExtend("r", "k", "x\n2\n")
	w.must(`{"op":"finish","run":"r"}`, &FinishResult{})
	if w.listed() != 1 {
		t.Error("it is not listed any more")
	}
}
