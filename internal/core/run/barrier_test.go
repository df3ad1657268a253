package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// A checkpoint is written while the ends of rows are still on their way to the journal, and the process dies between the
// two. The rows are not forgotten: a checkpoint leaves out only what is durable elsewhere.
func TestH6CheckpointForgetsNoRowWhoseEndIsNotDurable(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.settings.Concurrency = 4
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Until(w.provider.started.Add(9 * time.Second)))
			return echo(a, nth)
		}
		journal := func(op tabletest.Op, key table.Key) bool { return op.IsWrite() && strings.HasPrefix(key.Sort, "j/") }
		f.Inject(tabletest.Fault{Kind: tabletest.NotDone, Delay: 15 * time.Second, On: journal, Err: tabletest.ErrCrashed})
		job := w.start("r1", callA, rows(6)...)
		ctx := t.Context()
		go func() {
			time.Sleep(12 * time.Second) // the tick of 10 s has been
			f.CrashAt(1, tabletest.NotDone)
		}()
		if _, err := job.Slice(ctx, w.ports(), 0, w.settings); err == nil {
			t.Fatal("no crash")
		}
		f.Heal()
		p := w.ports()
		p.Alive = func(string) bool { return false }
		job = w.reload(job)
		if res, err := job.Slice(ctx, p, 0, w.settings); err != nil || res.Outcome != run.Done {
			t.Fatalf("%+v, %v", res, err)
		}
		if got := w.export(w.reload(job)); strings.Count(got, "\n") != 7 {
			t.Errorf("the table is\n%s", got)
		}
	})
}
