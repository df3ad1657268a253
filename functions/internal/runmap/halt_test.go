package runmap

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// forever is a provider that never answers, until it is interrupted.
type forever struct{}

func (forever) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	<-ctx.Done()
	for i := range batch {
		deliver(i, call.Answer{Outcome: call.Refused})
	}
	return nil
}

// A parked run is cancelled, and the execution that still waits wakes all the same (an emulator may not stop it): its slice
// does nothing, and its end neither fails the run nor writes a table.
func TestX4AnExecutionThatOutlivesACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)))
		p := &provider{holds: 1, until: time.Hour}
		w := newWorld(t, p)
		w.Settings.Linger, w.Settings.Concurrency = 0, 1
		w.register("leads-2026-01", "x\n1\n2\n")
		var plan PlanResult
		w.must(sample(t, "runmap-plan-request.json"), &plan)
		var slice SliceResult
		w.must(sample(t, "runmap-slice-request.json"), &slice)
		if err := run.Cancel(t.Context(), w.Store, "leads-2026-01"); err != nil {
			t.Fatal(err)
		}
		asked := p.asked
		w.must(`{"op":"slice","run":"leads-2026-01","shard":0,"slices":1}`, &slice)
		expect(t, "runmap-slice-response-cancelled.json", slice)
		if rec := w.record("leads-2026-01"); rec.Status != sheet.Cancelled || p.asked != asked || w.listed() != 0 {
			t.Errorf("%s, %d calls, %d listed", rec.Status, p.asked-asked, w.listed())
		}
		expect(t, "sluice.run.cancelled.json", w.board.events[0].Detail)
		w.must(`{"op":"slice","run":"leads-2026-01","shard":0,"slices":1999}`, &slice)
		if slice.Outcome != "cancelled" || slice.Rollover {
			t.Errorf("%+v", slice)
		}
		var fin FinishResult
		w.must(sample(t, "runmap-finish-request.json"), &fin)
		if fin.Status != sheet.Cancelled || fin.Outcome != "done" {
			t.Errorf("%+v", fin)
		}
		w.must(sample(t, "runmap-plan-request.json"), &plan)
		if len(plan.Shards) != 0 {
			t.Errorf("%+v", plan)
		}
	})
}

// A slice is at work when its run is cancelled: it ends within two seconds, and makes the record true.
func TestX4R10ASliceEndsWhenItsRunIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, forever{})
		w.register("r", "x\n1\n2\n")
		var plan PlanResult
		w.must(`{"op":"plan","run":"r"}`, &plan)
		time.AfterFunc(time.Minute, func() {
			if err := run.Cancel(context.Background(), w.Store, "r"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		var slice SliceResult
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &slice)
		if took := time.Since(began) - time.Minute; slice.Outcome != "cancelled" || took > 2*time.Second {
			t.Errorf("%+v after %v", slice, took)
		}
		if rec := w.record("r"); rec.Status != sheet.Cancelled {
			t.Error(rec.Status)
		}
	})
}

// A paused run goes on in a new execution. The old one comes to its end later, and changes nothing: neither while the
// run is paused, nor when it is at work again.
func TestX4APausedRunGoesOnInANewExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{holds: 1, until: time.Hour}
		w := newWorld(t, p)
		w.Settings.Concurrency = 1
		w.register("r", "x\n1\n2\n")
		var plan PlanResult
		var slice SliceResult
		var fin FinishResult
		w.must(`{"op":"plan","run":"r"}`, &plan)
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &slice)
		if err := run.Pause(t.Context(), w.Store, "r", "lunch"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w.must(`{"op":"slice","run":"r","shard":0,"slices":1}`, &slice)
			w.must(`{"op":"finish","run":"r"}`, &fin)
			rec := w.record("r")
			if slice.Outcome != "paused" || fin.Status != sheet.Paused || rec.Pause.Reason != "lunch" || w.listed() != 1 || len(w.board.events) != 0 {
				t.Errorf("%+v, %+v, %+v", slice, fin, rec)
			}
		}
		time.Sleep(1000 * time.Hour) // the journal has expired
		rec, err := run.Continue(t.Context(), w.Store, "r", sheet.Budget{})
		if err != nil || rec.Execution() != 1 {
			t.Fatal(rec, err)
		}
		w.must(`{"op":"finish","run":"r"}`, &fin) // of the old execution
		if fin.Status != sheet.Running || w.record("r").Status != sheet.Running {
			t.Errorf("%+v", fin)
		}
		w.must(`{"op":"plan","run":"r"}`, &plan)
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &slice)
		w.must(`{"op":"finish","run":"r"}`, &fin)
		if slice.Outcome != "done" || fin.Status != sheet.Completed || p.asked != 3 {
			t.Errorf("%+v, %+v, %d calls", slice, fin, p.asked)
		}
	})
}
