package run_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// bounded is a map with a budget.
func bounded(mapText, budget string) string {
	return strings.Replace(mapText, "columns:", "budget: "+budget+"\ncolumns:", 1)
}

// paid answers like echo, for money.
func paid(micros int64) func(call.Attempt, int) call.Answer {
	return func(a call.Attempt, nth int) call.Answer {
		answer := echo(a, nth)
		answer.CostMicros = micros
		return answer
	}
}

// pausedAt works the run until it pauses, and returns why.
func (w *world) pausedAt(job *run.Job) string {
	w.t.Helper()
	for {
		res := w.slice(job)
		switch res.Outcome {
		case run.Paused:
			rec := w.settle(job.Run.ID)
			if rec.Status != sheet.Paused || rec.Pause == nil {
				w.t.Fatalf("the record is %s, %+v", rec.Status, rec.Pause)
			}
			return rec.Pause.Reason
		case run.Parked:
			time.Sleep(time.Until(res.WakeAt))
		case run.Done:
			w.t.Fatal("the run is done")
		}
	}
}

func (w *world) raise(id string, b sheet.Budget) {
	w.t.Helper()
	if _, err := run.Continue(w.t.Context(), w.st, id, b); err != nil {
		w.t.Fatal(err)
	}
}

// The run pauses before the call that would be too many, says so, and goes on when the budget is raised; nothing is asked
// twice. Without a raise it pauses again, and nothing is sent.
func TestBudgetOfCallsPausesBeforeItIsExceeded(t *testing.T) {
	for _, places := range []int{1, 4, 64} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.settings.Concurrency = places
			w.provider.answer = slowEcho(10 * time.Millisecond)
			lines := rows(20)
			job := w.start("r1", bounded(callA, "{calls: 7}"), lines...)
			for range 2 {
				if why := w.pausedAt(job); why != "the budget of 7 calls is spent; raise it to go on" || len(w.provider.log()) != 7 {
					t.Errorf("%d calls, %q", len(w.provider.log()), why)
				}
				w.raise("r1", sheet.Budget{})
				job = w.reload(job)
			}
			w.raise("r1", sheet.Budget{Calls: 12})
			if why := w.pausedAt(w.reload(job)); why != "the budget of 12 calls is spent; raise it to go on" || len(w.provider.log()) != 12 {
				t.Errorf("%d calls, %q", len(w.provider.log()), why)
			}
			w.raise("r1", sheet.Budget{Calls: 20})
			got := w.finish(w.reload(job))
			if strings.Count(got, "\n") != 21 || strings.Contains(got, "failed") || len(w.provider.log()) != 20 {
				t.Errorf("%d calls, got %s", len(w.provider.log()), got)
			}
		})
	}
}

const dearTools = `
version: 1
providers: {a: {url: "https://a.example", limits: [{rate: 1000000, per: 1s}]}}
tools: {a.get: {method: GET, path: "/{x}", cost: 0.30}}
`

// Money is bounded by what the next call would cost.
func TestBudgetOfMoneyPausesBeforeItIsExceeded(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = paid(300_000)
		job, err := w.startOf("r1", bounded(callA, "{cost: 1.00}"), dearTools, rows(20)...)
		if err != nil {
			t.Fatal(err)
		}
		if why := w.pausedAt(job); why != "the budget of 1 is spent as far as it goes: the next call would cost 0.3; raise it to go on" || len(w.provider.log()) != 3 {
			t.Errorf("%d calls, %q", len(w.provider.log()), why)
		}
		if s := w.reload(job).Run.Stats; s.CostMicros != 900_000 {
			t.Errorf("%+v", s)
		}
		w.raise("r1", sheet.Budget{CostMicros: 6_000_000})
		if got := w.finish(w.reload(job)); strings.Count(got, "\n") != 21 || len(w.provider.log()) != 20 {
			t.Errorf("%d calls", len(w.provider.log()))
		}
	})
}

// A call that fails for good costs nothing of the money, and what was set aside for it serves the next one.
func TestBudgetOfMoneyIsWhatIsPaid(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r1") { // 11 of 20
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
			}
			return paid(300_000)(a, nth)
		}
		job, err := w.startOf("r1", bounded(callA, "{cost: 3.00}"), dearTools, rows(20)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.finish(job); strings.Count(got, "HTTP_422") != 11 {
			t.Errorf("got %s", got)
		}
	})
}

// What is reused, cached or waits for its turn is no call; each attempt is one.
func TestBudgetCountsDispatches(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.finish(w.start("earlier", cachedCall, same(1)...))
		if got := w.finish(w.start("r1", bounded(cachedCall, "{calls: 1}"), append(same(5), "w", "w")...)); strings.Count(got, "\n") != 8 {
			t.Errorf("got %s", got)
		}
		turns := 0
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if turns++; turns <= 3 {
				at := time.Now().Add(time.Second)
				return call.Answer{Outcome: call.Refused, Until: at, NextFree: at}
			}
			return echo(a, nth)
		}
		if got := w.finish(w.start("r2", bounded(callA, "{calls: 1}"), rows(1)...)); got != "x,one\nr0,r0\n" {
			t.Errorf("got %s", got)
		}
		w.provider.answer = broken
		before := len(w.provider.log())
		if why := w.pausedAt(w.start("r3", bounded(callA, "{calls: 3}"), rows(1)...)); len(w.provider.log())-before != 3 {
			t.Errorf("%d attempts, %q", len(w.provider.log())-before, why)
		}
	})
}

// A request for many calls is one.
func TestBudgetCountsBatchesOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 10)
		w.text = bounded(w.text, "{calls: 3, cost: 0.03}")
		lines := rows(30)
		if got := w.work(w.plan(lines...)); got != echoed(lines) || len(w.bulk.log()) != 3 {
			t.Errorf("%d requests, got %s", len(w.bulk.log()), got)
		}
	})
}

// Two shards side by side never exceed the budget together, and leave little of it unused.
func TestBudgetHoldsOverShards(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		const budget = 700
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Duration(len(a.Input)) * time.Millisecond)
			return echo(a, nth)
		}
		job := w.inShards(w.start("r1", bounded(callA, fmt.Sprintf("{calls: %d}", budget)), rows(3000)...), 2)
		outcomes := make([]run.Outcome, 2)
		var wg sync.WaitGroup
		for shard := range outcomes {
			ports, mine := w.ports(), w.reload(job)
			wg.Go(func() {
				res, err := mine.Slice(t.Context(), ports, shard, w.settings)
				if err != nil {
					t.Error(err)
				}
				outcomes[shard] = res.Outcome
			})
		}
		wg.Wait()
		calls := len(w.provider.log())
		if outcomes[0] != run.Paused || outcomes[1] != run.Paused || calls > budget || calls < budget*19/20 {
			t.Errorf("%v after %d calls of a budget of %d", outcomes, calls, budget)
		}
		if rec := w.settle("r1"); rec.Status != sheet.Paused || !strings.Contains(rec.Pause.Reason, "700 calls") || rec.Stats.Dispatched != int64(calls) {
			t.Errorf("%s, %+v, %d dispatched", rec.Status, rec.Pause, rec.Stats.Dispatched)
		}
	})
}

// The process dies at every write: however that is, the provider never sees a call more than the budget allows, and of
// what a dead process had set aside only what it may have used is lost.
func TestBudgetHoldsOverCrashes(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for n, crashed := 1, true; crashed && !t.Failed(); n++ {
			onMemory(t, func(t *testing.T, tbl table.Table) { crashed = crashWithinBudget(t, tbl, n, kind) })
		}
	}
}

func crashWithinBudget(t *testing.T, tbl table.Table, n int, kind tabletest.Kind) (crashed bool) {
	f := tabletest.NewFaulty(tbl)
	w := newWorld(t, f)
	w.settings.Concurrency = 3
	w.provider.answer = slowEcho(10 * time.Millisecond)
	job := w.start("r1", bounded(callA, "{calls: 10}"), rows(10)...)
	f.CrashAt(n, kind)
	for {
		ports := w.ports()
		ports.Alive = func(string) bool { return false }
		res, err := job.Slice(t.Context(), ports, 0, w.settings)
		if f.Crashed() {
			crashed = true
			f.Heal()
			job = w.reload(job)
			continue
		}
		calls := len(w.provider.log())
		switch {
		case err != nil:
			t.Fatal(n, err)
		case res.Outcome == run.Paused:
			if calls > 10 || calls < 10-6 { // twice three places
				t.Errorf("crash at write %d: paused after %d calls", n, calls)
			}
			w.settle("r1")
			w.raise("r1", sheet.Budget{Calls: 100})
			job = w.reload(job)
		case res.Outcome == run.Done:
			f.Heal()
			if got := w.export(w.reload(job)); strings.Count(got, "\n") != 11 || strings.Contains(got, "failed") || calls > 16 {
				t.Errorf("crash at write %d: %d calls, got %s", n, calls, got)
			}
			return crashed
		}
	}
}

// The end of a run spends the same budget.
func TestBudgetCoversTheStepsOfFinish(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		text := bounded(callA, "{calls: 3}") + "finish:\n  - {call: a.post, with: {x: end}}\n"
		job := w.start("r1", text, rows(3)...)
		if res := w.slice(job); res.Outcome != run.Done {
			t.Fatal(res.Outcome)
		}
		res, err := job.Finish(t.Context(), w.ports(), w.settings, func(context.Context) error { return nil })
		if err != nil || res.Outcome != run.Paused || len(w.provider.log()) != 3 {
			t.Errorf("%+v, %v, %d calls", res, err, len(w.provider.log()))
		}
	})
}
