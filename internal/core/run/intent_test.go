package run_test

import (
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const unfenced = `
version: 1
name: posting
columns:
  - {name: sent, call: a.post, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: after, value: "${cells.sent + '.'}"}
`

// The store dies at every write of a run whose calls must not be repeated. No call is ever made twice; a row whose call
// was under way says that its outcome is unknown.
func TestT8CrashNeverRepeatsAnUnfencedPost(t *testing.T) {
	for n := 1; ; n++ {
		crashed, unknown := true, 0
		onMemory(t, func(t *testing.T, tbl table.Table) {
			faulty := tabletest.NewFaulty(tbl)
			faulty.CrashAt(n, []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed}[n%2])
			w := newWorld(t, faulty)
			w.settings.Concurrency = 2
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				if string(a.Input) == `{"x":"r3"}` && nth == 0 {
					return heldFor(time.Minute)
				}
				return echo(a, nth)
			}
			_, err := w.toTheEnd(unfenced, rows(5))
			crashed = faulty.Crashed()
			faulty.Heal()
			if err != nil {
				if _, err = w.toTheEnd(unfenced, rows(5)); err != nil {
					t.Fatalf("crash at write %d: %v", n, err)
				}
			}
			for request, times := range completed(w.provider) {
				if times > 1 {
					t.Errorf("crash at write %d: %s was made %d times", n, request, times)
				}
			}
			job, err := run.LoadJob(t.Context(), w.st, "r1")
			if err != nil {
				t.Fatal(err)
			}
			for v, err := range job.Rows(t.Context(), w.ports()) {
				if err != nil {
					t.Fatal(err)
				}
				if v.Status == run.StatusFailed {
					unknown++
					if v.Error.Code != "OUTCOME_UNKNOWN" {
						t.Errorf("crash at write %d: row %d failed with %v", n, v.Row, v.Error)
					}
				}
			}
		})
		if unknown > 4 { // two places, and the rows before them may have ended without being saved
			t.Errorf("crash at write %d: %d rows are unknown", n, unknown)
		}
		if t.Failed() || !crashed {
			return
		}
	}
}

// A refusal is definite: the call was not executed, and is made again after the hold, also by another process.
func TestT8RefusedPostIsMadeAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth < 2 {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		got := w.finish(w.start("r1", unfenced, "x", "ada"))
		if want := "x,sent,after\nada,ada,ada.\n"; got != want || len(w.parks) != 2 {
			t.Errorf("got %q after %d parks, want %q after 2", got, len(w.parks), want)
		}
	})
}
