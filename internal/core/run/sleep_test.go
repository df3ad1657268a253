package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const sleepy = `
version: 1
name: sleepy
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: nap, sleep: "${row.nap}", when: "${row.nap != ''}"}
  - {name: two, call: b.get, with: {x: "${cells.one}"}, result: "${result.x}"}
output: {x: "${row.x}", two: "${cells.two}"}
`

// Rows sleep for as long as they say and no longer, while the others go on; what was called before is not called again.
func TestRowsSleepDurably(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", sleepy, "x,nap", "r0,2h", "r1,", "r2,30m", "r3,2h")
		if got := w.finish(job); got != "x,two\nr0,r0\nr1,r1\nr2,r2\nr3,r3\n" {
			t.Errorf("got %q", got)
		}
		if n := w.provider.calls("a.get", ""); n != 4 {
			t.Errorf("%d calls before the sleep, want 4", n)
		}
		for x, want := range map[string]float64{"r0": 7200, "r1": 0, "r2": 1800, "r3": 7200} {
			if got := w.provider.times("b.get", x); !near(got, seconds(want)) {
				t.Errorf("%s went on at %v, want %v s", x, got, want)
			}
		}
		if len(w.parks) != 2 {
			t.Errorf("%d parks, want one for each time", len(w.parks))
		}
	})
}

// Rows that sleep hold no place and no part of the checkpoint; only their number and the first time are told.
func TestSleepingRowsAreNotInTheCheckpoint(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.settings.MaxWaiting = 10
		lines := []string{"x,nap"}
		for i := range 100 {
			lines = append(lines, fmt.Sprintf("r%d,%dm", i, 60+i))
		}
		job := w.start("r", sleepy, lines...)
		res := w.slice(job)
		cp := w.checkpoint(job)
		if res.Outcome != run.Parked || time.Until(res.WakeAt).Round(time.Second) != time.Hour {
			t.Errorf("%+v, in %v", res, time.Until(res.WakeAt))
		}
		if len(cp.Pending) != 0 || cp.Cursor != 100 || cp.Waits != (sheet.Waiting{Asleep: 100, Settled: true}) {
			t.Errorf("checkpoint: %d pending, cursor %d, %+v", len(cp.Pending), cp.Cursor, cp.Waits)
		}
		if got := w.finish(job); strings.Count(got, "\n") != 101 {
			t.Errorf("%d lines", strings.Count(got, "\n"))
		}
		if cp := w.checkpoint(job); cp.Waits != (sheet.Waiting{Settled: true}) {
			t.Errorf("at the end: %+v", cp.Waits)
		}
		if left := items(t, tbl, "run/r/shard/0000", "w/"); len(left) != 0 {
			t.Errorf("left on the list: %v", left)
		}
	})
}

// A short sleep is waited out inside the slice, like a short hold.
func TestShortSleepIsResident(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", sleepy, "x,nap", "r0,3s", "r1,1s")
		w.finish(job)
		if slices := w.checkpoint(job).Stats.Slices; len(w.parks) != 0 || slices != 1 {
			t.Errorf("%d parks, %d slices", len(w.parks), slices)
		}
		if got := w.provider.times("b.get", ""); !near(got, seconds(1, 3)) {
			t.Errorf("went on at %v", got)
		}
	})
}

// The end of a sleep is fixed when it begins: however often the row is replayed, it does not begin anew (E1).
func TestE1SleepIsNotBegunAnew(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", sleepy, "x,nap", "r0,2h")
		for range 3 { // the process dies with the item of the wait list not written; each time the row is entered again
			f.Inject(tabletest.Fault{Kind: tabletest.NotDone, On: func(op tabletest.Op, key table.Key) bool {
				return op.IsWrite() && strings.HasPrefix(key.Sort, "w/")
			}})
			if _, err := job.Slice(t.Context(), w.ports(), 0, w.settings); err == nil {
				t.Fatal("the write was lost and nobody said so")
			}
			f.Heal()
			time.Sleep(20 * time.Minute)
			job = w.reload(job)
		}
		w.finish(job)
		if got := w.provider.times("b.get", ""); !near(got, seconds(7200)) {
			t.Errorf("went on at %v, want after 2 h", got)
		}
		if n := w.provider.calls("a.get", ""); n != 1 {
			t.Errorf("%d calls before the sleep", n)
		}
	})
}

func TestSleepThatCannotBeComputedFailsTheRow(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", sleepy, "x,nap", "r0,soon", "r1,")
		got := w.finish(job)
		if !strings.Contains(got, "EXPRESSION") || !strings.Contains(got, "soon") || !strings.Contains(got, "r1,r1,completed") {
			t.Errorf("got %q", got)
		}
	})
}

// Sleeps of different lengths meet the end of an invocation, and a stop.
func TestSleepingRowsSurviveAStop(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		stop := make(chan struct{})
		w.settings.Stop = stop
		job := w.start("r", sleepy, "x,nap", "r0,4s", "r1,2h")
		time.AfterFunc(2*time.Second, func() { close(stop) })
		if res := w.slice(job); res.Outcome != run.Parked {
			t.Fatalf("%+v", res)
		}
		w.settings.Stop = nil
		w.finish(job)
		if got := w.provider.times("b.get", ""); !near(got, seconds(4, 7200)) {
			t.Errorf("went on at %v", got)
		}
	})
}

// Rows that sleep are shown as waiting, with what for.
func TestRowsThatSleepAreShown(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", sleepy, "x,nap", "r0,2h", "r1,")
		w.slice(job)
		if got := w.statuses(job, w.st); !slices.Equal(got, []string{run.StatusWaiting, run.StatusCompleted}) {
			t.Errorf("statuses %v", got)
		}
		for v, err := range job.Rows(t.Context(), w.ports()) {
			if err != nil || v.Status == run.StatusWaiting && (v.Waits == nil || v.Waits.Column != "nap" || time.Until(v.Waits.Until).Round(time.Second) != 2*time.Hour) {
				t.Errorf("%+v, %v", v.Waits, err)
			}
		}
	})
}
