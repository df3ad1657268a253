package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const toldAll = `
version: 1
name: leads
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
finish:
  - {call: a.post, with: {x: "told ${run.completed}"}, result: "${result.x}"}
  - {call: b.get, with: {x: "held ${run.completed}"}, result: "${result.x}"}
  - publish: {name: report.json, public: false, content: "${run.completed}"}
  - {call: a.post, with: {x: "again ${run.calls.dispatched}"}, result: "${result.x}"}
`

// The store dies at every write there is. Whenever it was, the run comes to its end afterwards, and each step is made
// once: one that must not be repeated never twice, and if it was under way its outcome is called unknown.
func TestFinishCrashAtEveryWrite(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		t.Run(fmt.Sprintf("kind=%d", kind), func(t *testing.T) {
			writes, atEnd := 0, 0
			for crashed := true; crashed && !t.Failed(); {
				writes++
				var whole bool
				crashed, whole = crashInFinish(t, kind, writes)
				if whole {
					atEnd++
				}
			}
			t.Logf("%d writes, %d of them after the rows had ended", writes-1, atEnd)
			if atEnd < 10 {
				t.Errorf("only %d crashes came after the rows had ended", atEnd)
			}
		})
	}
}

// crashInFinish lets the store die at its nth write. It reports whether there was one, and whether the rows had ended.
func crashInFinish(t *testing.T, kind tabletest.Kind, n int) (crashed, whole bool) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		faulty := tabletest.NewFaulty(tbl)
		faulty.CrashAt(n, kind)
		w := newWorld(t, faulty)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "held") && nth < 2 {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		_, err := w.toTheEnd(toldAll, rows(2))
		crashed = faulty.Crashed()
		if crashed && err == nil {
			t.Fatalf("write %d was lost and nobody said so", n)
		}
		faulty.Heal()
		if rec, err := sheet.Load(t.Context(), w.st, "r1"); err == nil {
			whole = rec.Whole()
		}
		got, err := w.toTheEnd(toldAll, rows(2))
		if err != nil || got != "x,one\nr0,r0\nr1,r1\n" {
			t.Fatalf("crash at write %d: %v\n%s", n, err, got)
		}
		w.eachStepOnce(n, crashed)
	})
	return crashed, whole
}

func (w *world) eachStepOnce(n int, crashed bool) {
	w.t.Helper()
	for request, times := range completed(w.provider) {
		if times > 1 && strings.HasPrefix(request, "a.post") || times > 2 {
			w.t.Errorf("crash at write %d: %s was made %d times", n, request, times)
		}
	}
	if got := w.stored("published/r1/report.json"); got != "2\n" {
		w.t.Errorf("crash at write %d: published %q", n, got)
	}
	rec, unknown := w.record("r1"), 0
	for _, step := range rec.Finish {
		switch {
		case step.Error != nil && step.Error.Code == "OUTCOME_UNKNOWN":
			unknown++
		case step.Error != nil || step.Call != "" && len(step.Result) == 0:
			w.t.Errorf("crash at write %d: %+v", n, step)
		}
	}
	if len(rec.Finish) != 4 || rec.Status != sheet.Completed || unknown > 1 || unknown > 0 && !crashed {
		w.t.Errorf("crash at write %d: %s, %d unknown of %+v", n, rec.Status, unknown, rec.Finish)
	}
	if counts := rec.Counts; counts != (sheet.Counts{Completed: 2}) {
		w.t.Errorf("crash at write %d: %+v", n, counts)
	}
}

// The journal of the hidden run is read by whoever looks at how the run stands.
func TestFinishIsSeenWhileItWorks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		watch := &run.Watch{}
		w.settings.Watch = watch
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "held") {
				time.Sleep(25 * time.Second)
			}
			return echo(a, nth)
		}
		w.rowsDone(toldAll, rows(2)...)
		time.AfterFunc(20*time.Second, func() {
			if snap, live := watch.Snapshot(); !live || !snap.Ending || snap.Counts.Completed != 2 || snap.Stats.Dispatched != 3 {
				t.Errorf("%+v", snap)
			}
			if rec := w.record("r"); rec.Stats.Dispatched != 3 || rec.Counts.Completed != 2 || rec.Stats.Slices != 2 || rec.Status != sheet.Running {
				t.Errorf("%+v", rec.Stats)
			}
		})
		w.end("r", nil)
	})
}
