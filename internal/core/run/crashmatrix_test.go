package run_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// promise is what docs/guarantees.md says of a kind of call, when the process dies at any moment.
type promise struct {
	tool    string
	repeats bool // what was in flight may be executed again; otherwise nothing ever is
	unknown bool // what was in flight may end as OUTCOME_UNKNOWN
}

var promises = []promise{
	{"get", true, false},        // idempotent: the provider sees the question twice
	{"cached", true, false},     // the same, and later runs take what was paid for
	{"onefenced", false, false}, // the provider sees the same key twice, and executes it once
	{"oneposts", false, true},   // neither: not made again
	{"many", true, false},       // the same, where calls share requests
	{"fenced", false, true},     // unknown only where a crash comes between the saving of two answers of a request
	{"posts", false, true},
}

// The process dies before and after every durable write there is on the way of a call: while a request is refused for a
// minute, the answer of another is lost, and the rest go well; once, and once more when the run is taken up again. Then
// the provider's books and the sheet are held against each other, and against what is promised.
func TestCrashMatrix(t *testing.T) {
	for _, p := range promises {
		for _, places := range []int{1, 4} {
			for _, crashes := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/places=%d/crashes=%d", p.tool, places, crashes), func(t *testing.T) {
					points := 0
					for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
						for n, crashed := 1, true; crashed && !t.Failed(); n++ {
							onMemory(t, func(t *testing.T, tbl table.Table) { crashed = crashOf(t, tbl, p, places, crashes, n, kind) })
							points++
						}
					}
					if points < 20 { // a journal, checkpoints, a page, the record, at the least
						t.Errorf("only %d moments were found", points)
					}
				})
			}
		}
	}
}

func crashOf(t *testing.T, tbl table.Table, p promise, places, crashes, n int, kind tabletest.Kind) (crashed bool) {
	f := tabletest.NewFaulty(tbl)
	w := newBulkWorld(t, f, p.tool, 3)
	w.settings.Concurrency = places
	w.bulk.answer = firstHeldThenLost(w.bulk)
	lines := rows(8)
	var got string
	err := errStore
	for crash := 0; err != nil; crash++ {
		f.Heal()
		if crash < crashes {
			f.CrashAt(n, kind)
		}
		var job *run.Job
		if job, err = w.startOf("r1", w.text, w.tools, lines...); err == nil {
			got, err = w.tryWork(job)
		}
		if crashed = crashed || f.Crashed(); err != nil && !f.Crashed() {
			t.Fatalf("write %d: %v", n, err)
		}
	}
	f.Heal()
	unknown := w.holdAgainst(t, p, n, got, lines)
	// What is in flight, and the ends of rows that were not saved yet: twice as many as rows work at once, for each death.
	// Where calls share requests, up to three times as many were in flight; one request has lost its answer by itself.
	inFlight := 2*places*crashes + 1
	if p.tool == "many" || p.tool == "fenced" || p.tool == "posts" {
		inFlight *= 3
	}
	again := 0
	for _, times := range w.bulk.executed {
		again += times - 1
	}
	if again > inFlight || unknown > inFlight {
		t.Errorf("write %d: %d calls were executed again, and %d are unknown; at most %d were in flight", n, again, unknown, inFlight)
	}
	if s := w.statsOf(t); s.Dispatched > int64(len(w.bulk.log())) || s.Dispatched < int64(len(w.bulk.log())-2*places*crashes) {
		t.Errorf("write %d: %d requests are counted, the provider has %d", n, s.Dispatched, len(w.bulk.log()))
	}
	if p.tool == "cached" {
		w.takenByLaterRuns(t, n, lines)
	}
	return crashed
}

// firstHeldThenLost refuses the first request for r1, and loses the answer to the first for r4.
func firstHeldThenLost(b *bulk) func(bulkRequest, int) *call.Answer {
	var held, lost atomic.Bool
	return func(r bulkRequest, _ int) *call.Answer {
		switch {
		case slices.Contains(r.xs, "r1") && held.CompareAndSwap(false, true):
			a := heldFor(time.Minute)
			return &a
		case slices.Contains(r.xs, "r4") && lost.CompareAndSwap(false, true):
			return b.lost(r)
		}
		return nil
	}
}

// holdAgainst holds each row against what the provider has executed for it.
func (w *bulkWorld) holdAgainst(t *testing.T, p promise, n int, got string, lines []string) (unknown int) {
	t.Helper()
	for line := range strings.Lines(got) {
		x, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
		executed := w.bulk.executed[x]
		switch {
		case x == "x":
		case strings.HasPrefix(rest, x+","+x+"!"):
			if executed == 0 {
				t.Errorf("write %d: row %s has a result that the provider never gave", n, x)
			}
		case strings.Contains(rest, "OUTCOME_UNKNOWN"):
			unknown++
			if !p.unknown {
				t.Errorf("write %d: %s", n, line)
			}
		default:
			t.Errorf("write %d: %s", n, line)
		}
		if executed > 1 && !p.repeats {
			t.Errorf("write %d: %s was executed %d times", n, x, executed)
		}
	}
	if strings.Count(got, "\n") != len(lines) {
		t.Errorf("write %d: got %s", n, got)
	}
	return unknown
}

func (w *bulkWorld) statsOf(t *testing.T) sheet.Stats {
	t.Helper()
	r, err := sheet.Load(t.Context(), w.st, "r1")
	if err != nil {
		t.Fatal(err)
	}
	return r.Stats
}

// takenByLaterRuns: what a run has paid for, in whatever number of lives, the next one does not pay for.
func (w *bulkWorld) takenByLaterRuns(t *testing.T, n int, lines []string) {
	t.Helper()
	before := len(w.bulk.log())
	job, err := w.startOf("r2", w.text, w.tools, lines...)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.work(job); got != echoed(lines) || len(w.bulk.log()) != before {
		t.Errorf("write %d: the next run made %d calls, and got %s", n, len(w.bulk.log())-before, got)
	}
}
