package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// resolved is a map with one resolver between two calls.
const resolved = `
version: 1
name: resolved
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: mid, resolve: mid, with: {x: "${cells.one}"}}
  - {name: two, call: b.get, with: {x: "${cells.mid}"}, result: "${result.x}"}
output: {x: "${row.x}", two: "${cells.two}"}
`

// with makes the world one whose maps may use a resolver named mid.
func (w *world) with(f resolver.Func) *world {
	w.resolvers = resolver.Set{"mid": {Tools: []string{"a.get", "a.post", "b.get"}, Run: f}}
	return w
}

// everything makes calls, steps, sleeps and asks, one after another and side by side.
func everything(c resolver.Cell, with map[string]any) (any, error) {
	x := with["x"].(string)
	first, err := c.Call("b.get", map[string]any{"x": x + "-first"})
	if err != nil {
		return nil, err
	}
	n, err := c.Step("body", func() (any, error) {
		_, err := c.Call("a.get", map[string]any{"x": x + "-inner"})
		return len(x), err
	})
	if err != nil {
		return nil, err
	}
	var parts [3]any
	err = c.Parallel(
		func(c resolver.Cell) (err error) {
			parts[0], err = c.Event(resolver.Event{Key: x, Expires: 72 * time.Hour, Notify: &resolver.Notify{Tool: "a.post",
				With: func(a resolver.Asked) map[string]any { return map[string]any{"x": a.Key + "-asked"} }}})
			return err
		},
		func(c resolver.Cell) (err error) {
			if err := c.Sleep(10 * time.Second); err != nil {
				return err
			}
			parts[1], err = c.Call("b.get", map[string]any{"x": x + "-slept"})
			return err
		},
		func(c resolver.Cell) (err error) {
			parts[2], err = c.Call("a.get", map[string]any{"x": x + "-held"})
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	return fmt.Sprint(first.(map[string]any)["x"], n, parts), nil
}

// everythingHolds makes some of its calls wait.
func everythingHolds(a call.Attempt, nth int) call.Answer {
	switch in := string(a.Input); {
	case strings.Contains(in, `"r0-held"`) && nth == 0:
		return heldFor(8 * time.Second)
	case strings.Contains(in, `"r1-first"`) && nth == 0:
		return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Error: &call.Error{Code: "HTTP_503", Message: "busy"}}
	}
	return echo(a, nth)
}

func everythingTable(xs ...string) string {
	text := "x,two\n"
	for _, x := range xs {
		text += fmt.Sprintf("%s,%s-first2 [yes map[x:%s-slept] map[x:%s-held]]\n", x, x, x, x)
	}
	return text
}

func TestResolverInARun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(everything)
		w.provider.answer = everythingHolds
		job := w.start("r1", resolved, "x", "r0", "r1")
		for i := range 2 {
			time.AfterFunc(time.Hour, func() { w.answer(fmt.Sprint("r", i), `"yes"`) })
		}
		began := time.Now()
		got := w.drive(job)
		if want := everythingTable("r0", "r1"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(began); took > time.Hour+2*time.Second {
			t.Errorf("it took %v, %v", took, w.provider.log())
		}
		for _, a := range w.provider.log() {
			most := 1
			if strings.Contains(a.input, `"r0-held"`) || strings.Contains(a.input, `"r1-first"`) {
				most = 2
			}
			if n := w.provider.calls(a.tool, a.input); n > most {
				t.Errorf("%s %s was asked %d times", a.tool, a.input, n)
			}
		}
	})
}

// The process dies at every write there is. What was recorded is not done again, and the result is the same.
func TestR12ResolverSurvivesACrashAtEveryWrite(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		t.Run(fmt.Sprint("kind=", kind), func(t *testing.T) {
			for n := 1; ; n++ {
				crashed := true
				onMemory(t, func(t *testing.T, tbl table.Table) { crashed = crashInResolver(t, tbl, n, kind) })
				if t.Failed() || !crashed {
					t.Logf("%d writes", n-1)
					return
				}
			}
		})
	}
}

func crashInResolver(t *testing.T, tbl table.Table, n int, kind tabletest.Kind) bool {
	f := tabletest.NewFaulty(tbl)
	f.CrashAt(n, kind)
	w := newWorld(t, f).with(everything)
	w.provider.answer = everythingHolds
	outside := &store.Store{Table: tbl, Blobs: w.st.Blobs}
	w.outside = outside
	for i := range 2 {
		time.AfterFunc(time.Minute, func() { persist(t, outside, fmt.Sprint("r", i), `"yes"`) })
	}
	began := time.Now()
	got, err := w.toTheEnd(resolved, []string{"x", "r0", "r1"})
	crashed := f.Crashed()
	if crashed && err == nil {
		t.Fatalf("write %d was lost and nobody said so", n)
	}
	f.Heal()
	if err != nil {
		got, err = w.toTheEnd(resolved, []string{"x", "r0", "r1"})
	}
	if want := everythingTable("r0", "r1"); err != nil || got != want {
		t.Fatalf("crash at write %d: %v, got %q, want %q", n, err, got, want)
	}
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("crash at write %d: it took %v", n, took)
	}
	for request, times := range completed(w.provider) {
		if times > 2 || times > 1 && strings.HasPrefix(request, "a.post") {
			t.Errorf("crash at write %d: %s completed %d times", n, request, times)
		}
	}
	return crashed
}

// A resolver that catches a hold and gives a value, an error, or makes another call, is held all the same (R3).
func TestR3AResolverThatSwallowsAHoldIsHeld(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(func(c resolver.Cell, with map[string]any) (any, error) {
			v, err := c.Call("a.get", map[string]any{"x": "held"})
			if err != nil {
				if _, again := c.Call("b.get", map[string]any{"x": "not dispatched"}); !errors.Is(again, err) {
					t.Errorf("the call after the hold: %v", again)
				}
				return "fallback", nil
			}
			return v.(map[string]any)["x"], nil
		})
		w.provider.answer = scripted("a.get", `"held"`, holds(time.Hour))
		job := w.start("r", resolved, rows(1)...)
		res := w.awaiting(job)
		if time.Until(res.WakeAt).Round(time.Second) != time.Hour || w.statuses(job, w.st)[0] != run.StatusHeld {
			t.Errorf("%+v, %v", res, w.statuses(job, w.st))
		}
		if n := w.provider.calls("b.get", ""); n != 0 {
			t.Errorf("%d calls after the hold", n)
		}
		if got := w.drive(job); got != "x,two\nr0,held\n" {
			t.Errorf("got %q", got)
		}
	})
}

// Cancellation, a lost shard and a store that fails end the slice, and win over a hold, whatever the resolver makes of them.
func TestR4WhatEndsASliceWinsOverAHold(t *testing.T) {
	swallows := func(c resolver.Cell, with map[string]any) (any, error) {
		_ = c.Parallel(
			func(c resolver.Cell) error { _, err := c.Call("a.get", map[string]any{"x": "held"}); return err },
			func(c resolver.Cell) error { _, err := c.Call("b.get", map[string]any{"x": "slow"}); return err },
		)
		return "fallback", nil
	}
	answer := func(a call.Attempt, nth int) call.Answer {
		if a.Tool == "a.get" && strings.Contains(string(a.Input), "held") {
			return heldFor(time.Hour)
		}
		if strings.Contains(string(a.Input), "slow") {
			time.Sleep(5 * time.Second)
		}
		return echo(a, nth)
	}
	t.Run("cancelled", func(t *testing.T) {
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl).with(swallows)
			w.provider.answer = answer
			job := w.start("r", resolved, rows(1)...)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("stopped at once")
			time.AfterFunc(time.Second, func() { cancel(why) })
			if _, err := job.Slice(ctx, w.ports(), 0, w.settings); !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("the store fails", func(t *testing.T) {
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.with(swallows)
			w.provider.answer = answer
			job := w.start("r", resolved, rows(1)...)
			time.AfterFunc(time.Second, func() {
				f.Inject(tabletest.Fault{Kind: tabletest.NotDone, Err: errStore, On: func(op tabletest.Op, key table.Key) bool {
					return op.IsWrite() && strings.HasPrefix(key.Sort, "j/")
				}})
			})
			if _, err := job.Slice(t.Context(), w.ports(), 0, w.settings); !errors.Is(err, sheet.ErrJournal) {
				t.Errorf("%v", err)
			}
			f.Heal()
			w.provider.answer = echo
			if got := w.drive(w.reload(job)); got != "x,two\nr0,fallback\n" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// Branches take places of their own, and give back what they took: with one place the run gets to its end, other rows go on
// while branches wait, and no more calls are made at once than there are branches.
func TestBranchesOfARowShareThePlaces(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(func(c resolver.Cell, with map[string]any) (any, error) {
			var branches []func(resolver.Cell) error
			var sum atomic.Int64
			for i := range 50 {
				branches = append(branches, func(c resolver.Cell) error {
					v, err := c.Call("a.get", map[string]any{"x": fmt.Sprint(with["x"], "/", i)})
					if err == nil && v != nil {
						sum.Add(1)
					}
					return err
				})
			}
			err := c.Parallel(branches...)
			return sum.Load(), err
		})
		var at, most atomic.Int64
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			most.Store(max(most.Load(), at.Add(1)))
			time.Sleep(10 * time.Millisecond)
			at.Add(-1)
			if nth == 0 && strings.Contains(string(a.Input), "r1/7") {
				return heldFor(time.Minute)
			}
			return echo(a, nth)
		}
		w.settings.Concurrency = 1
		watch := &run.Watch{}
		w.settings.Watch = watch
		job := w.start("r", resolved, rows(3)...)
		if got := w.drive(job); got != "x,two\nr0,50\nr1,50\nr2,50\n" {
			t.Errorf("got %q", got)
		}
		if last := watch.Last(); last.AtWork != 0 || last.Turning != 0 {
			t.Errorf("at the end %+v", last)
		}
		if most.Load() > 64 {
			t.Errorf("%d calls at once", most.Load())
		}
	})
}

// One branch is held by a provider, another waits for an answer: the row takes the answer while it is held, and the branch
// goes on (E3, E5).
func TestE5ABranchIsHeldAndAnotherWaitsForAnAnswer(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(func(c resolver.Cell, with map[string]any) (any, error) {
			var ok any
			err := c.Parallel(
				func(c resolver.Cell) error { _, err := c.Call("a.get", map[string]any{"x": "held"}); return err },
				func(c resolver.Cell) (err error) {
					if ok, err = c.Event(resolver.Event{Key: "go"}); err != nil {
						return err
					}
					_, err = c.Call("b.get", map[string]any{"x": "after"})
					return err
				})
			return ok, err
		})
		w.provider.answer = scripted("a.get", `"held"`, holds(3*time.Hour))
		job := w.start("r", resolved, rows(1)...)
		time.AfterFunc(time.Hour, func() { w.answer("go", `"yes"`) })
		if got := w.drive(job); got != "x,two\nr0,yes\n" {
			t.Errorf("got %q", got)
		}
		if got := w.provider.times("b.get", `"after"`); len(got) != 1 || got[0] < time.Hour || got[0] > time.Hour+2*time.Second {
			t.Errorf("the branch went on at %v", got)
		}
		if got := w.provider.times("a.get", `"held"`); !near(got, seconds(0, 3*3600)) {
			t.Errorf("the provider was asked at %v", got)
		}
	})
}

// The first of several answers that a row waits for is taken when it comes, and the expiry of another when it is time.
func TestE5ManyWaitsOfOneRow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		var mu sync.Mutex
		ended := map[string]time.Duration{}
		began := time.Now()
		w := newWorld(t, tbl).with(func(c resolver.Cell, _ map[string]any) (any, error) {
			var branches []func(resolver.Cell) error
			for _, key := range []string{"a", "b", "c", "d"} {
				branches = append(branches, func(c resolver.Cell) error {
					expires := map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 3 * time.Hour, "d": time.Hour}[key]
					_, err := c.Event(resolver.Event{Key: key, Expires: expires, Open: key == "d"})
					if !resolver.Waits(err) {
						mu.Lock()
						if _, known := ended[key]; !known {
							ended[key] = time.Since(began)
						}
						mu.Unlock()
						return nil
					}
					return err
				})
			}
			return "done", c.Parallel(branches...)
		})
		w.provider.answer = echo
		job := w.start("r", resolved, rows(1)...)
		time.AfterFunc(30*time.Minute, func() { w.answer("b", "1") })
		time.AfterFunc(5*time.Hour, func() { w.answer("d", "1") })
		if got := w.drive(job); got != "x,two\nr0,done\n" {
			t.Errorf("got %q", got)
		}
		for key, want := range map[string]time.Duration{"a": time.Hour, "b": 30 * time.Minute, "c": 3 * time.Hour, "d": 5 * time.Hour} {
			if late := ended[key] - want; late < 0 || late > 2*time.Second {
				t.Errorf("%s ended after %v, want %v", key, ended[key], want)
			}
		}
		if left := items(t, tbl, "run/r/shard/0000", "w/"); len(left) != 0 {
			t.Errorf("left on the list: %v", left)
		}
	})
}

// What a resolver has come to is recorded: a later column that waits does not run it again.
func TestAResolverIsNotRunAgainWhenItHasEnded(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		var runs atomic.Int64
		w := newWorld(t, tbl).with(func(_ resolver.Cell, with map[string]any) (any, error) {
			if runs.Add(1); with["x"] == "r1" {
				return nil, errors.New("not this one")
			}
			return runs.Load(), nil
		})
		w.provider.answer = scripted("b.get", "", holds(time.Hour), holds(time.Hour))
		job := w.start("r", resolved, rows(2)...)
		got := w.drive(job)
		if !strings.Contains(got, "mid: RESOLVER: not this one") || runs.Load() != 2 {
			t.Errorf("%d runs, got %q", runs.Load(), got)
		}
	})
}

// A panic fails its row, with what it says; the others go on, and so does the program.
func TestAPanicFailsTheRow(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(func(c resolver.Cell, with map[string]any) (any, error) {
			if with["x"] == "r1" {
				panic("what is this")
			}
			return with["x"], nil
		})
		w.provider.answer = echo
		got := w.drive(w.start("r", resolved, rows(3)...))
		if !strings.Contains(got, "r1,,failed,mid: PANIC: what is this") || !strings.Contains(got, "r0,r0,completed") || !strings.Contains(got, "r2,r2,completed") {
			t.Errorf("got %q", got)
		}
	})
}

// Run again after a park, the resolver does something else than before.
func TestR12AResolverThatChangesItsMindFailsTheRow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		var runs atomic.Int64
		w := newWorld(t, tbl).with(func(c resolver.Cell, _ map[string]any) (any, error) {
			v, err := c.Call("b.get", map[string]any{"x": fmt.Sprint("run ", runs.Add(1))})
			if err != nil {
				return nil, err
			}
			return v, c.Sleep(time.Hour)
		})
		w.provider.answer = echo
		got := w.drive(w.start("r", resolved, rows(1)...))
		if !strings.Contains(got, "mid: NON_DETERMINISTIC: run again, the resolver does call b.get") {
			t.Errorf("got %q", got)
		}
	})
}

// A call whose number of attempts is durable goes on counting when the resolver is run again (R6), and one that must not be
// repeated is not (T8).
func TestR6T8CallsOfResolversAreCalls(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl).with(func(c resolver.Cell, _ map[string]any) (any, error) {
			_, err := c.Call("a.get", map[string]any{"x": "never"})
			var e *resolver.Error
			if !errors.As(err, &e) {
				return nil, err
			}
			_, err = c.Call("a.post", map[string]any{"x": "unknown"})
			var u *resolver.Error
			if !errors.As(err, &u) {
				return nil, err
			}
			return e.Code + " " + u.Code, nil
		})
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch in := string(a.Input); {
			case strings.Contains(in, "never"):
				return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Error: &call.Error{Code: "HTTP_503", Message: "busy"}}
			case strings.Contains(in, "unknown"):
				return call.Answer{Outcome: call.Unknown, Dispatched: true, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "?"}}
			}
			return echo(a, nth)
		}
		w.settings.Budget.Limit = time.Millisecond // every backoff parks
		if got := w.drive(w.start("r", resolved, rows(1)...)); got != "x,two\nr0,HTTP_503 OUTCOME_UNKNOWN\n" {
			t.Errorf("got %q", got)
		}
		var numbers []int
		for _, a := range w.provider.log() {
			if strings.Contains(a.input, "never") {
				numbers = append(numbers, a.number)
			}
		}
		if fmt.Sprint(numbers) != "[0 1 2 3]" || w.provider.calls("a.post", "") != 1 {
			t.Errorf("attempts %v, and %d of what must not be repeated", numbers, w.provider.calls("a.post", ""))
		}
	})
}

func TestUnknownResolvers(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		var problems mapspec.Problems
		if _, err := w.tryStart("r", resolved, rows(1)...); !errors.As(err, &problems) || problems[0].Line != 6 || !strings.Contains(err.Error(), "there is no resolver `mid`") {
			t.Errorf("%v", err)
		}
		w.with(everything)
		w.provider.answer = echo
		job := w.start("r", resolved, rows(1)...)
		w.resolvers = nil // another program, which does not have it
		_, err := w.reload(job).Slice(t.Context(), w.ports(), 0, w.settings)
		var missing *run.NoResolverError
		if !errors.As(err, &missing) || !run.Permanent(err) {
			t.Errorf("%v", err)
		}
	})
}

// Large results of operations and of resolvers take the way of large cells.
func TestLargeValuesOfResolvers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		large := strings.Repeat("x", 100_000)
		w := newWorld(t, tbl).with(func(c resolver.Cell, _ map[string]any) (any, error) {
			v, err := c.Step("large", func() (any, error) { return large, nil })
			if err != nil {
				return nil, err
			}
			if err := c.Sleep(time.Hour); err != nil {
				return nil, err
			}
			return map[string]any{"again": v, "same": v == large}, nil
		})
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			var in struct{ X any }
			if err := json.Unmarshal(a.Input, &in); err != nil {
				t.Error(err)
			}
			if m, is := in.X.(map[string]any); is {
				return ok(map[string]any{"x": m["same"]})
			}
			return echo(a, nth)
		}
		if got := w.drive(w.start("r", resolved, rows(1)...)); got != "x,two\nr0,true\n" {
			t.Errorf("got %.200q", got)
		}
	})
}
