package runmap

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/cost"
	"sluice/internal/memory"
)

// spending answers as provider does, and has used the store for it.
type spending struct{ call.Gateway }

func (spending) Used() table.Usage { return table.Usage{WriteUnits: 1000, ReadUnits: 2000} }

// What plan, slices, finish and toolexec ask of the store is in the run's record, which a bill is made of.
func TestUseOfTheStoreIsBookedToTheRun(t *testing.T) {
	w := newWorld(t, nil)
	meter := table.Meter(memory.New())
	w.Store.Table, w.Store.Meter = meter, meter
	w.Gateway = func(*run.Job) call.Gateway { return spending{&provider{}} }
	w.register("r", "x\n1\n2\n3\n")
	registered := meter.Usage()
	w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
	planned := w.record("r").Usage
	if planned.WriteUnits < 2 || planned.ReadUnits < 2 {
		t.Errorf("planning has booked %+v", planned)
	}
	w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
	w.must(`{"op":"finish","run":"r"}`, &FinishResult{})
	rec := w.record("r")
	if rec.SliceUsage.WriteUnits <= 1000 || rec.SliceUsage.ReadUnits <= 2000 {
		t.Errorf("the slice has booked %+v", rec.SliceUsage)
	}
	if rec.Usage.ReadUnits <= planned.ReadUnits {
		t.Errorf("finishing has booked nothing: %+v", rec.Usage)
	}
	// All but what comes after each one's last look: a record, a checkpoint, the record and the end's own items.
	booked, used := rec.Usage.Add(rec.SliceUsage), meter.Usage().Sub(registered)
	missing := used.WriteUnits + 1000 - booked.WriteUnits
	if missing < 0 || missing > 10 {
		t.Errorf("%d write units booked, of %d and 1000 of toolexec", booked.WriteUnits, used.WriteUnits)
	}
	if u := cost.Used(rec); u.RunmapRequests != 3 || u.ToolexecRequests < 1 || u.WriteUnits != booked.WriteUnits {
		t.Errorf("the bill is for %+v", u)
	}
}

// The steps of `finish` are on the bill too, also those of an invocation that ended with a park.
func TestUseOfTheStoreByFinishIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{windows: 1}
		w := newWorld(t, nil)
		meter := table.Meter(memory.New())
		w.Store.Table, w.Store.Meter = meter, meter
		w.Gateway = func(*run.Job) call.Gateway { return spending{q} }
		w.registerMap("r", finishing, "x\n1\n2\n3\n")
		registered := meter.Usage()
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
		var fin FinishResult
		for _, outcome := range []string{"parked", "done"} {
			if w.must(`{"op":"finish","run":"r"}`, &fin); fin.Outcome != outcome {
				t.Fatalf("%+v", fin)
			}
			time.Sleep(2 * time.Hour)
		}
		rec := w.record("r")
		booked, used := rec.Usage.Add(rec.SliceUsage), meter.Usage().Sub(registered)
		missing := used.WriteUnits + 3*1000 - booked.WriteUnits // toolexec's, of the shard's slice and of two more
		if missing < 0 || missing > 14 {
			t.Errorf("%d write units booked, of %d and 3000 of toolexec", booked.WriteUnits, used.WriteUnits)
		}
		if rec.Stats.Slices != 3 || rec.Stats.Parks != 1 || rec.Stats.Dispatched != 5 {
			t.Errorf("%+v", rec.Stats)
		}
	})
}

// The count of transitions knows when a machine rolls over: a slice has two, and four more where that takes a new execution.
func TestBillKnowsTheRollover(t *testing.T) {
	step := cost.StateTransitions(1, RolloverAfter, 0, 0) - cost.StateTransitions(1, RolloverAfter-1, 0, 0)
	over := cost.StateTransitions(1, RolloverAfter+1, 0, 0) - cost.StateTransitions(1, RolloverAfter, 0, 0)
	if step != 2 || over != 6 {
		t.Errorf("%d and %d transitions more", step, over)
	}
}
