package run_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// The process dies at every write of a run whose calls travel together, once with the write lost and once with it done,
// while one request meets a hold and the answer of another is lost on its way. What may be repeated is repeated as it
// may be, and what may not is not.
func TestT2T8CrashOfBatches(t *testing.T) {
	for tool, most := range map[string]int{"many": 3, "posts": 1, "fenced": 1} {
		for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
			t.Run(tool, func(t *testing.T) {
				unknown := 0
				for n := 1; ; n++ {
					crashed := true
					onMemory(t, func(t *testing.T, tbl table.Table) {
						var lostRows int
						crashed, lostRows = crashOfBatches(t, tbl, tool, most, n, kind)
						unknown = max(unknown, lostRows)
					})
					if t.Failed() || !crashed {
						t.Logf("%s: %d writes, at most %d of 9 rows are unknown", tool, n-1, unknown)
						break
					}
				}
				if tool == "many" && unknown > 0 {
					t.Errorf("%d rows of an idempotent tool are unknown", unknown)
				}
			})
		}
	}
}

func crashOfBatches(t *testing.T, tbl table.Table, tool string, most, n int, kind tabletest.Kind) (crashed bool, unknown int) {
	f := tabletest.NewFaulty(tbl)
	f.CrashAt(n, kind)
	w := newBulkWorld(t, f, tool, 3)
	var held, lost atomic.Bool
	w.bulk.answer = func(r bulkRequest, _ int) *call.Answer {
		switch {
		case slices.Contains(r.xs, "r1") && held.CompareAndSwap(false, true):
			a := heldFor(time.Minute)
			return &a
		case slices.Contains(r.xs, "r4") && tool != "posts" && lost.CompareAndSwap(false, true):
			return w.bulk.lost(r)
		}
		return nil
	}
	lines := rows(9)
	try := func() (string, error) {
		job, err := w.startOf("r1", w.text, w.tools, lines...)
		if err != nil {
			return "", err
		}
		return w.tryWork(job)
	}
	got, err := try()
	crashed = f.Crashed()
	f.Heal()
	if err != nil {
		if got, err = try(); err != nil {
			t.Fatalf("crash at write %d: %v", n, err)
		}
	}
	for x, times := range w.bulk.executed {
		if times > most {
			t.Errorf("crash at write %d: %s was executed %d times", n, x, times)
		}
	}
	for line := range strings.Lines(got) {
		x, _, _ := strings.Cut(line, ",")
		switch {
		case x == "x" || strings.Contains(line, x+","+x+","+x+"!"):
		case strings.Contains(line, "OUTCOME_UNKNOWN"):
			unknown++
		default:
			t.Errorf("crash at write %d: %s", n, line)
		}
	}
	return crashed, unknown
}
