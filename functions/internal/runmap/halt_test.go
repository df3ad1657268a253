package runmap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/bus"
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

// ends are the events of runs that are over.
func (w *world) ends() []bus.Event {
	return slices.DeleteFunc(slices.Clone(w.board.events), func(e bus.Event) bool { return !e.Detail.Status.Ended() })
}

// told are the events of a type.
func (w *world) told(kind string) []bus.Event {
	return slices.DeleteFunc(slices.Clone(w.board.events), func(e bus.Event) bool { return e.Type != kind })
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
		ends := w.ends()
		if len(ends) != 1 || ends[0].Type != bus.Cancelled {
			t.Fatalf("%+v", ends)
		}
		expect(t, "sluice.run.cancelled.json", ends[0].Detail)
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
			time.Sleep(time.Second)
			w.must(`{"op":"finish","run":"r"}`, &fin)
			rec := w.record("r")
			if slice.Outcome != "paused" || fin.Status != sheet.Paused || rec.Pause.Reason != "lunch" || w.listed() != 1 || len(w.ends()) != 0 {
				t.Errorf("%+v, %+v, %+v", slice, fin, rec)
			}
			time.Sleep(time.Second)
		}
		if told := w.told(bus.Paused); len(told) != 1 { // once, however often the slices come to their end
			t.Errorf("told %+v", told)
		} else {
			expect(t, "sluice.run.paused.json", told[0].Detail)
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

// The execution of a run that is retried begins with making its failed rows ready. It may be told so twice, and die between.
func TestX4ARetryIsTheFirstThingThatItsExecutionDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		w := newWorld(t, refusing{p})
		w.register("r", "x\n1\n2\n")
		var plan PlanResult
		var slice SliceResult
		var fin FinishResult
		through := func() {
			t.Helper()
			w.must(`{"op":"plan","run":"r"}`, &plan)
			w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &slice)
			w.must(`{"op":"finish","run":"r"}`, &fin)
		}
		through()
		if fin.Completed != 1 || fin.Failed != 1 {
			t.Fatalf("%+v", fin)
		}
		for range 2 { // again is harmless
			rec, err := run.AskRetry(t.Context(), w.Store, "r", run.RetryOptions{})
			if err != nil || rec.Status != sheet.Paused || rec.Execution() != 1 {
				t.Fatal(rec, err)
			}
		}
		w.must(`{"op":"plan","run":"r"}`, &plan)
		if rec := w.record("r"); rec.Status != sheet.Running || rec.Counts != (sheet.Counts{Completed: 1}) || len(plan.Shards) != 1 {
			t.Errorf("%s, %+v", rec.Status, rec.Counts)
		}
		through()
		if fin.Status != sheet.Completed || fin.Completed != 2 || p.asked != 2 {
			t.Errorf("%+v, %d calls were answered", fin, p.asked)
		}
		if _, err := run.AskRetry(t.Context(), w.Store, "r", run.RetryOptions{}); !errors.Is(err, run.ErrEnded) {
			t.Error(err)
		}
	})
}

// refusing is a provider that finds a question wrong once.
type refusing struct{ *provider }

func (r refusing) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i, a := range batch {
		if strings.Contains(string(a.Input), "1") && r.provider.takes == 0 {
			r.provider.takes = time.Nanosecond
			deliver(i, call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}})
			continue
		}
		if err := r.provider.Execute(ctx, []call.Attempt{a}, func(_ int, answer call.Answer) { deliver(i, answer) }); err != nil {
			return err
		}
	}
	return nil
}
