package run_test

import (
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// Paid for are the seconds before the answers and the short hold, which is waited out; not the long hold, for which the
// shard parks.
func TestTimeOfSlicesAndBatchesIsMeasuredWithoutParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		script := scripted("a.get", "r0", holds(3*time.Second), holds(time.Hour))
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Second)
			return script(a, nth)
		}
		job := w.start("r", callA, rows(1)...)
		time.Sleep(w.parked(job))
		if s := w.checkpoint(job).Stats; !about(s.SliceMs, 1000+3000+1000) || !about(s.ToolMs, 2000) || s.ToolBatches != 2 {
			t.Errorf("after the park: %+v", s)
		}
		job = w.reload(job) // another process: what it measures is added
		w.finish(job)
		s := w.record("r").Stats
		if !about(s.SliceMs, 5000+1000) || !about(s.ResidentWaitMs, 3000) || !about(s.ToolMs, 3000) || s.ToolBatches != 3 {
			t.Errorf("in the end: %+v", s)
		}
		if s.Slices != 2 || s.Parks != 1 {
			t.Errorf("%d slices, %d parks", s.Slices, s.Parks)
		}
	})
}

// functions is a gateway that is billed by what its functions tell, and not by how long they are waited for.
type functions struct{ call.Gateway }

func (functions) Billed() call.Billed { return call.Billed{Millis: 77, MemoryMB: 256} }

func TestTimeOfFunctionsIsWhatTheyTell(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Memory = 128
		w.provider.answer = scripted("a.get", "r0", holds(time.Hour))
		job := w.start("r", callA, rows(1)...)
		for _, want := range []int64{77, 2 * 77} { // of two slices
			ports := w.ports()
			ports.Gateway = functions{w.provider}
			res, err := job.Slice(t.Context(), ports, 0, w.settings)
			if err != nil {
				t.Fatal(err)
			}
			if s := w.checkpoint(job).Stats; s.ToolMs != want || s.ToolMB != 256 || s.SliceMB != 128 {
				t.Errorf("%+v", s)
			}
			time.Sleep(time.Until(res.WakeAt))
			job = w.reload(job)
		}
	})
}

func about(ms, want int64) bool { return ms >= want-20 && ms <= want+100 }

// Where one invocation at a time uses the store, each books its own use: nothing twice, and nothing of others.
func TestUseOfTheStoreIsBookedOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		meter := table.Meter(tbl)
		w := newWorld(t, meter)
		w.provider.answer = scripted("a.get", "r0", holds(time.Hour))
		job := w.start("r", callA, rows(1)...)
		w.st.Meter = meter
		if _, err := meter.Get(t.Context(), table.Key{Part: "of", Sort: "others"}); err == nil {
			t.Fatal("it is there")
		}
		start := meter.Usage()
		job = w.reload(job)
		time.Sleep(w.parked(job))
		if res := w.slice(job); res.Outcome != run.Done { // the same process goes on
			t.Fatalf("ended %s", res.Outcome)
		}
		used, booked := meter.Usage().Sub(start), w.checkpoint(job).Usage
		// Not booked: each slice's last write of the checkpoint, one unit, and the cut of the journal behind it.
		if booked.ReadUnits > used.ReadUnits || booked.WriteUnits > used.WriteUnits-2 || booked.WriteUnits < used.WriteUnits-8 {
			t.Errorf("booked %+v of %+v", booked, used)
		}
		w.export(job)
		if rec := w.record("r"); rec.Usage.ReadUnits == 0 || rec.SliceUsage != booked {
			t.Errorf("the record says %+v and %+v", rec.Usage, rec.SliceUsage)
		}
	})
}

func (w *world) record(id string) *sheet.Run {
	w.t.Helper()
	rec, err := sheet.Load(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}
