package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// M5: a row takes its place first, and only then is anything loaded for it. While two rows are at work, of a table of six
// pages only theirs and the one read ahead have been fetched, however many rows are waiting to be admitted.
func TestM5RowsAreLoadedWhenTheyHaveAPlace(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.settings.Concurrency = 2
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Hour)
			return call.Answer{Outcome: call.Failed, Dispatched: true, Error: &call.Error{Code: "X", Message: "no"}}
		}
		job := w.start("r1", strings.Replace(callA, "name:", "onRowError: fail\nname:", 1), rows(6000)...)
		fetched := func() (pages int) {
			for _, e := range f.Trace() {
				if e.Op == tabletest.OpGet && strings.HasSuffix(e.Keys[0].Part, "/in") && strings.HasPrefix(e.Keys[0].Sort, "p/") {
					pages++
				}
			}
			return pages
		}
		before := fetched()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = job.Slice(t.Context(), w.ports(), 0, w.settings) // ends with the first row that fails
		}()
		time.Sleep(time.Minute)
		if n := fetched() - before; n != 2 {
			t.Errorf("%d pages were fetched for two rows", n)
		}
		<-done
	})
}
