package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// The budget of a call is 5 s: its first hold of 3 s is waited out, a second one does not fit any more.
func TestR1SecondHoldOfThreeSecondsParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(3*time.Second), holds(3*time.Second))
		job := w.start("r", callA, rows(1)...)
		if wait := w.parked(job); (wait - 3*time.Second).Abs() > 20*time.Millisecond {
			t.Errorf("parked for %v, want 3s", wait)
		}
		w.finish(job)
		if got := w.provider.times("a.get", ""); !near(got, seconds(0, 3, 6)) {
			t.Errorf("asked at %v, want 0, 3 and 6 s", got)
		}
	})
}

func TestR1HoldThatFitsIsWaitedOut(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(4900*time.Millisecond))
		if res := w.slice(w.start("r", callA, rows(3)...)); res.Outcome != run.Done {
			t.Errorf("the slice ended %s, want done", res.Outcome)
		}
	})
}

func TestR2EmptyHoldsSpendTheBudgetAndPark(t *testing.T) {
	for name, d := range map[string]time.Duration{"zero": 0, "expired": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.provider.answer = func(call.Attempt, int) call.Answer { return heldFor(d) }
				job := w.start("r", callA, rows(1)...)
				begun := time.Now()
				wait := w.parked(job)
				if took := time.Since(begun); took > 5100*time.Millisecond || wait != time.Second {
					t.Errorf("parked after %v for %v, want 5 s at most, and 1 s", took, wait)
				}
				if n := len(w.provider.log()); n > 5001 { // a millisecond each is what an empty hold costs
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// A call whose budget is spent keeps that mark over a park: then even a short hold is a park. The next call of the same
// row starts anew.
func TestR2SpentMarkSurvivesAPark(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		first := scripted("a.get", "r0", holds(time.Hour), holds(2*time.Second))
		second := scripted("b.get", "r0", holds(2*time.Second))
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "a.get" {
				return first(a, nth)
			}
			return second(a, nth)
		}
		job := w.start("r", twoCalls, rows(1)...)
		time.Sleep(w.parked(job))
		if cp := w.checkpoint(job); !cp.Pending[0].Spent {
			t.Error("the checkpoint does not say that the budget is spent")
		}
		job = w.reload(job)
		if wait := w.parked(job); wait > 2*time.Second {
			t.Errorf("parked for %v", wait)
		}
		time.Sleep(2 * time.Second)
		if res := w.slice(w.reload(job)); res.Outcome != run.Done {
			t.Errorf("the hold of another call: %s, want it waited out", res.Outcome)
		}
	})
}

func TestR4CancellationWinsOverAHold(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(4*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		job := w.start("r", callA, rows(1)...)
		begun := time.Now()
		if err := w.failing(ctx, job); !errors.Is(err, context.Canceled) || time.Since(begun) > time.Second {
			t.Errorf("after %v: %v, want a cancellation at 1 s", time.Since(begun), err)
		}
		w.finish(job)
	})
}

func TestR4PersistenceFailureWinsOverAHold(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = scripted("a.get", `"r0"`, holds(time.Hour))
		job := w.start("r", callA, rows(20)...)
		f.Inject(tabletest.Fault{On: puts(isJournal), Err: errStore})
		if err := w.failing(t.Context(), job); !errors.Is(err, sheet.ErrJournal) {
			t.Errorf("got %v, want ErrJournal", err)
		}
		if cp := w.checkpoint(job); cp.Status == sheet.ShardParked {
			t.Error("the shard is parked")
		}
		f.Heal()
		w.finish(w.reload(job))
	})
}

const patient = `
version: 1
providers:
  a: {url: "https://a.example", limits: [{rate: 1000000, per: 1s}]}
tools:
  a.get: {method: GET, path: "/{x}", retry: {attempts: 7}}
`

// Every attempt fails with a 503. There are seven in all, over parks and fresh processes, and then the row fails.
func TestR6R7AttemptsAreCountedOverParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = broken
		job, err := w.startOf("r", callA, patient, rows(1)...)
		if err != nil {
			t.Fatal(err)
		}
		parks := 0
		for {
			res := w.slice(w.reload(job))
			if res.Outcome == run.Done {
				break
			}
			parks++
			time.Sleep(time.Until(res.WakeAt))
		}
		var numbers []int
		for _, a := range w.provider.log() {
			numbers = append(numbers, a.number)
		}
		if want := []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(numbers, want) || parks < 2 {
			t.Errorf("attempts %v over %d parks, want %v", numbers, parks, want)
		}
		if got := w.export(job); !strings.Contains(got, "failed") || !strings.Contains(got, "HTTP_503") {
			t.Errorf("got %q", got)
		}
	})
}

// The process is killed while the third attempt is under way. The next one goes on there, and never at the beginning.
func TestR6AttemptsAreCountedOverAKill(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth == 2 {
				f.CrashAt(1, tabletest.NotDone)
			}
			return broken(a, nth)
		}
		job, err := w.startOf("r", callA, patient, rows(1)...)
		if err != nil {
			t.Fatal(err)
		}
		w.failing(t.Context(), job)
		f.Heal()
		time.Sleep(run.Lease)
		for {
			res := w.slice(w.reload(job))
			if res.Outcome == run.Done {
				break
			}
			time.Sleep(time.Until(res.WakeAt))
		}
		var numbers []int
		for _, a := range w.provider.log() {
			numbers = append(numbers, a.number)
		}
		if want := []int{0, 1, 2, 2, 3, 4, 5, 6}; !slices.Equal(numbers, want) { // the lost one is asked for again
			t.Errorf("attempts %v, want %v", numbers, want)
		}
	})
}

// A row comes back after a park: what it has been told already it does not ask again, and what it asks again it asks
// under the same name.
func TestR12RowReplaysItsCallsAtTheSamePositions(t *testing.T) {
	const positions = `
version: 1
name: positions
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - name: two
    waterfall:
      - {call: a.get, with: {x: "${row.x + '-first'}"}, accept: "${false}"}
      - {call: b.get, with: {x: "${row.x + '-second'}"}, result: "${result.x}"}
  - {name: three, call: a.get, with: {x: "${cells.two + '-third'}"}, result: "${result.x}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "", holds(time.Hour), holds(time.Hour))
		job := w.start("r", positions, rows(2)...)
		for range 2 {
			time.Sleep(w.parked(job))
			job = w.reload(job)
		}
		got := w.finish(job)
		if want := "x,one,two,three\nr0,r0,r0-second,r0-second-third\nr1,r1,r1-second,r1-second-third\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		byInput, byRequest := map[string][]string{}, map[string]string{}
		for _, a := range w.provider.log() {
			key := a.tool + a.input
			byInput[key] = append(byInput[key], a.request)
			if other, ok := byRequest[a.request]; ok && other != key {
				t.Errorf("%s and %s went under the same request id", other, key)
			}
			byRequest[a.request] = key
		}
		for key, requests := range byInput {
			held := strings.HasPrefix(key, "b.get")
			if held != (len(requests) == 3) || !held && len(requests) != 1 {
				t.Errorf("%s was asked %d times", key, len(requests))
			}
		}
	})
}

// A deadline that lies in the past, as after a clock that jumped, is neither a negative wait nor a busy loop.
func TestR13DeadlinesInThePastNeverLoop(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(time.Hour))
		job := w.start("r", callA, rows(1)...)
		w.parked(job)
		w.provider.answer = func(call.Attempt, int) call.Answer { return heldFor(-24 * time.Hour) }
		time.Sleep(time.Hour)
		begun, before := time.Now(), len(w.provider.log())
		for range 10 {
			wait := w.parked(w.reload(job))
			if wait < time.Second {
				t.Fatalf("parked for %v", wait)
			}
			time.Sleep(wait)
		}
		if n := len(w.provider.log()) - before; n > 10 || time.Since(begun) < 10*time.Second {
			t.Errorf("asked %d times in %v", n, time.Since(begun))
		}
	})
}
