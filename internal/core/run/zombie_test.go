package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// A slice is cancelled, its heir reads the journal and parks. Then a write of the dead one arrives that was still under
// way. It is as if it had not: the heir's heir neither believes it nor loses a row over it.
func TestX2LateWriteOfALostSliceIsNotRead(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", callA, rows(3)...)
		ctx, cancel := context.WithCancel(t.Context())
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r0") {
				return echo(a, nth)
			}
			time.AfterFunc(10*time.Millisecond, cancel)
			<-ctx.Done()
			return call.Answer{Outcome: call.Refused}
		}
		if err := w.failing(ctx, job); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.provider.answer = func(call.Attempt, int) call.Answer { return heldFor(time.Hour) }
		wait := w.parked(w.reload(job))

		late := sheet.OpenJournal(w.st, sheet.JournalOptions{
			Run: "other", Epoch: 1, Stats: func() sheet.Stats { return sheet.Stats{} }, Told: func(sheet.Counts, error) {},
		})
		if _, err := late.Append(&sheet.Entry{Kind: sheet.RowEnded, Row: 1}); err != nil {
			t.Fatal(err)
		}
		late.Close()
		group := items(t, tbl, "run/other/shard/0000", "j/")[0]
		group.Key = table.Key{Part: "run/r/shard/0000", Sort: "j/00000001/0000000099"}
		if err := tbl.Put(t.Context(), group, table.Always()); err != nil {
			t.Fatal(err)
		}

		time.Sleep(wait)
		w.provider.answer = echo
		if got, want := w.finish(w.reload(job)), "x,one\nr0,r0\nr1,r1\nr2,r2\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if counts := w.reload(job).Run.Counts; counts != (sheet.Counts{Completed: 3}) {
			t.Errorf("counts %+v", counts)
		}
	})
}
