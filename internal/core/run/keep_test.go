package run_test

import (
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/table"
)

// Where the journal expires instead of being cut, a run that is held for longer than that loses nothing: what the
// journal holds is saved with the pages before the wait.
func TestHoldOutlivesTheJournal(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Keep, w.settings.Linger = 24*time.Hour, 25*time.Millisecond
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "b.get" && nth < 3 {
				return heldFor(20 * time.Hour)
			}
			return echo(a, nth)
		}
		got := w.finish(w.start("r1", twoCalls, "x", "ada", "bob"))
		if want := "x,up,one,two\nada,ADA,ada,ada!\nbob,BOB,bob,bob!\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := w.provider.calls("a.get", ""); n != 2 {
			t.Errorf("the calls that were saved were made %d times", n)
		}
		if len(w.parks) < 3 {
			t.Errorf("%d parks", len(w.parks))
		}
	})
}
