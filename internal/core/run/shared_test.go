package run_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const cachedCall = `
version: 1
name: cached
columns:
  - {name: one, call: a.cached, with: {x: "${row.x}"}, result: "${result.x}"}
`

func same(n int) []string { return append([]string{"x"}, slices.Repeat([]string{"v"}, n)...) }

func TestH10IdenticalCallsShareOnePhysicalCall(t *testing.T) {
	for _, mapText := range []string{callA, cachedCall} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.provider.answer = slowEcho(50 * time.Millisecond)
			got := w.finish(w.start("r", mapText, same(10)...))
			if want := "x,one\n" + strings.Repeat("v,v\n", 10); got != want {
				t.Errorf("got %q", got)
			}
			if n := len(w.provider.log()); n != 1 {
				t.Errorf("%d physical calls, want 1", n)
			}
		})
	}
}

// The owner meets a hold: all ten rows get it, and whoever comes first afterwards makes the one call that is left.
func TestH10HoldOfTheOwnerHoldsItsFollowers(t *testing.T) {
	for _, mapText := range []string{callA, cachedCall} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				time.Sleep(50 * time.Millisecond)
				if nth == 0 {
					return heldFor(time.Hour)
				}
				return echo(a, nth)
			}
			job := w.start("r", mapText, same(10)...)
			w.parked(job)
			cp := w.checkpoint(job)
			if len(cp.Pending) != 10 || len(w.provider.log()) != 1 {
				t.Errorf("%d rows held after %d calls, want 10 after 1", len(cp.Pending), len(w.provider.log()))
			}
			for _, p := range cp.Pending {
				if !p.Until.Equal(cp.Pending[0].Until) {
					t.Errorf("row %d is held until %v, another until %v", p.Row, p.Until, cp.Pending[0].Until)
				}
			}
			w.finish(job)
			if n := len(w.provider.log()); n != 2 {
				t.Errorf("%d physical calls in all, want 2", n)
			}
		})
	}
}

// While one run is parked on a hold, its claim is free: another run that asks for the same is not kept waiting.
func TestH10ClaimIsReleasedBeforeTheHold(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.cached", "v", holds(time.Hour))
		w.parked(w.start("r1", cachedCall, same(3)...))
		start := time.Now()
		w.finish(w.start("r2", cachedCall, same(3)...))
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the other run took %v: it waited for the claim of a parked run", took)
		}
		if n := len(w.provider.log()); n != 2 {
			t.Errorf("%d calls, want one of each run", n)
		}
	})
}

func TestH10ClaimThatCannotBeReleasedFailsOwnerAndFollowers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(50 * time.Millisecond)
			if nth == 0 {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		job := w.start("r", cachedCall, same(5)...)
		f.Inject(tabletest.Fault{Err: errStore, On: func(op tabletest.Op, k table.Key) bool { return op == tabletest.OpDelete && isReceipt(k) }})
		err := w.failing(t.Context(), job) // it returns: nobody is left waiting
		if !errors.Is(err, errStore) || !strings.Contains(err.Error(), "claim") {
			t.Errorf("got %v, want the store's failure with the claim", err)
		}
		for _, p := range w.checkpoint(job).Pending {
			if !p.Until.IsZero() {
				t.Errorf("row %d got a hold", p.Row)
			}
		}
		f.Heal()
		if got, want := w.finish(job), "x,one\n"+strings.Repeat("v,v\n", 5); got != want {
			t.Errorf("got %q", got)
		}
	})
}

func TestH10TwoRunsAtOnceSharePaidResults(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = slowEcho(2 * time.Second)
		jobs := []*run.Job{w.start("r1", cachedCall, rows(5)...), w.start("r2", cachedCall, rows(5)...)}
		var wg sync.WaitGroup
		for i, job := range jobs {
			ports := w.ports()
			wg.Go(func() {
				for {
					res, err := job.Slice(t.Context(), ports, 0, w.settings)
					if err != nil {
						t.Error(i, err)
						return
					}
					if res.Outcome == run.Done {
						return
					}
					time.Sleep(time.Until(res.WakeAt))
				}
			})
		}
		wg.Wait()
		if a, b := w.export(jobs[0]), w.export(jobs[1]); a != b || !strings.Contains(a, "r4,r4") {
			t.Errorf("the runs differ: %q and %q", a, b)
		}
		if n := len(w.provider.log()); n != 5 {
			t.Errorf("%d physical calls for 5 questions", n)
		}
		w.finish(w.start("r3", cachedCall, rows(5)...))
		if n := len(w.provider.log()); n != 5 {
			t.Errorf("a later run paid again: %d calls", n)
		}
	})
}

// Rows that share a call keep of it what their own expressions say, also when the result comes from before a park.
func TestH10SharedResultIsReadByEachRowsOwnExpressions(t *testing.T) {
	const own = `
version: 1
name: own
columns:
  - {name: gate, call: b.get, with: {x: "${row.y}"}, result: "${result.x}"}
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x + row.y}"}
  - {name: two, call: a.get, with: {x: "${row.x}"}, result: "${result.x + string(index)}"}
  - {name: three, call: a.get, with: {x: "${row.x}"}, result: "${result.x + cells.gate}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "late", holds(time.Hour))
		job := w.start("r", own, "x,y", "v,early", "v,late", "w,early")
		w.parked(job)
		got := w.finish(w.reload(job))
		want := "x,y,gate,one,two,three\nv,early,early,vearly,v0,vearly\nv,late,late,vlate,v1,vlate\nw,early,early,wearly,w2,wearly\n"
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := w.provider.calls("a.get", "v"); n != 1 && n != 2 {
			t.Errorf("%d calls for one question", n)
		}
	})
}

// The second slice starts when the page of the first call is long saved and its journal cut, and does not pay again.
func TestH10IdenticalCallsAreSharedWithPagesOfEarlierSlices(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "last") && nth == 0 {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		lines := []string{"x,g"}
		for range 1500 { // more than a page
			lines = append(lines, "same,g")
		}
		lines = append(lines, "last,g", "same,g")
		w.finish(w.start("r1", twoCalls, lines...))
		if len(w.parks) != 2 { // one a provider
			t.Fatalf("%d parks", len(w.parks))
		}
		if n := w.provider.calls("a.get", "same"); n != 1 {
			t.Errorf("the same call was made %d times", n)
		}
	})
}

// A question that the provider calls wrong is not asked again for the next row; one that failed for the moment is.
func TestH10DefiniteRefusalsAreSharedToo(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			status := 422
			if strings.Contains(string(a.Input), "moment") {
				status = 503
			}
			return call.Answer{Outcome: call.Failed, Dispatched: true, Status: status, Error: &call.Error{Code: "HTTP", Message: "no"}}
		}
		got := w.finish(w.start("r1", twoCalls, "x", "wrong", "wrong", "moment", "moment"))
		if n := strings.Count(got, "one: HTTP: no"); n != 4 {
			t.Errorf("%d rows failed: %s", n, got)
		}
		if wrong, moment := w.provider.calls("a.get", "wrong"), w.provider.calls("a.get", "moment"); wrong != 1 || moment != 2 {
			t.Errorf("asked %d times what is wrong, %d times what failed for the moment", wrong, moment)
		}
	})
}

// What a waterfall did not accept, or found missing, is not asked again after a park either, wherever in the row it came.
func TestH10RejectedResultsAreSharedToo(t *testing.T) {
	const gate = `
version: 1
name: rejected
columns:
  - {name: gate, call: b.get, with: {x: "${row.y}"}, result: "${result.x}"}
  - name: found
    waterfall:
      - {call: a.get, with: {x: "${row.x}"}, accept: "${result.x == 'good'}"}
`
	for name, rest := range map[string]string{
		"the last call of the row":   "    otherwise: ${row.y}\n",
		"followed by another":        "      - {call: b.get, with: {x: \"${row.x}\"}, result: \"${result.x}\"}\n    otherwise: ${row.y}\n",
		"followed by another column": "    otherwise: ${row.y}\n  - {name: more, call: b.get, with: {x: \"${row.y}\"}, result: \"${result.x}\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.settings.Concurrency = 1
				w.provider.answer = scripted("b.get", "late", holds(time.Hour))
				job := w.start("r", gate+rest, "x,y", "bad,early", "bad,late", "good,late")
				w.parked(job)
				got := w.finish(w.reload(job))
				for i, line := range strings.Split(strings.TrimSpace(got), "\n")[1:] {
					want := []string{"bad,early,early,early", "bad,late,late,late", "good,late,late,\"{\"\"x\"\":\"\"good\"\"}\""}[i]
					if name == "followed by another" {
						want = []string{"bad,early,early,bad", "bad,late,late,bad", want}[i]
					}
					if !strings.HasPrefix(line, want) {
						t.Errorf("row %d is %s, want %s", i, line, want)
					}
				}
				if bad, good := w.provider.calls("a.get", "bad"), w.provider.calls("a.get", "good"); bad != 1 || good != 1 {
					t.Errorf("asked %d and %d times", bad, good)
				}
			})
		})
	}
}
