package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

const twoCalls = `
version: 1
name: two
columns:
  - {name: up, value: "${row.x.upperAscii()}"}
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: two, call: b.get, with: {x: "${cells.one}"}, result: "${result.x + '!'}"}
`

func TestRunFillsEveryCell(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		got := w.finish(w.start("r1", twoCalls, "x", "ada", "bob"))
		want := "x,up,one,two\nada,ADA,ada,ada!\nbob,BOB,bob,bob!\n"
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A hold of an hour on one row parks the shard; its siblings are done by then, and nobody asked again too early.
func TestH1H3HoldStopsOneRowAndParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r3") && a.Tool == "b.get" && nth == 0 {
				time.Sleep(50 * time.Millisecond) // the others are through
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		job := w.start("r1", twoCalls, rows(6)...)
		res := w.slice(job)
		if res.Outcome != run.Parked {
			t.Fatalf("outcome %s, want parked", res.Outcome)
		}
		if wait := time.Until(res.WakeAt).Round(time.Second); wait != time.Hour {
			t.Errorf("wakes in %v, want 1h", wait)
		}
		cp := w.checkpoint(job)
		if cp.Counts.Completed != 5 || len(cp.Pending) != 1 || cp.Pending[0].Index != 3 || cp.Pending[0].Input == "" {
			t.Errorf("checkpoint %+v, want 5 completed and row 3 pending", cp)
		}
		time.Sleep(time.Until(res.WakeAt))
		w.finish(job)
		if n := w.provider.calls("a.get", "r3"); n != 1 {
			t.Errorf("the finished cell of the held row was called for %d times", n)
		}
		if n := w.provider.calls("b.get", ""); n != 7 {
			t.Errorf("%d calls of b, want one a row and one more for the hold", n)
		}
	})
}
