package run_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// pairs is a table for byProvider: the rows named in a call provider a, the others b.
func pairs(n int, a ...int) []string {
	lines := []string{"x,p"}
	for i := range n {
		p := "b"
		for _, j := range a {
			if i == j {
				p = "a"
			}
		}
		lines = append(lines, "r"+itoa(i)+","+p)
	}
	return lines
}

// One row at a time, each of 300 ms. A row that is held for a second takes no place meanwhile, and comes next when
// its second is over, before all the rows that are fresh.
func TestQ1DueRowGoesBeforeFreshOnes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "a.get" && nth == 0 {
				return heldFor(time.Second)
			}
			time.Sleep(300 * time.Millisecond)
			return echo(a, nth)
		}
		w.finish(w.start("r", byProvider, pairs(20, 0)...))
		if got := w.provider.times("a.get", ""); !near(got, seconds(0, 1.2)) {
			t.Errorf("the held row was asked for at %v, want at 0 and 1.2 s", got)
		}
		if last := w.provider.log(); !near([]time.Duration{last[len(last)-1].at}, seconds(18*0.3+0.3)) {
			t.Errorf("the last call came at %v: a held row took a place", last[len(last)-1].at)
		}
	})
}

// A hold of 6 s is over the budget. It does not keep the slice alive, but as long as another row does, it rejoins.
func TestQ2SpentRowRejoinsWhileOthersAreActive(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "a.get" && nth == 0 {
				return heldFor(6 * time.Second)
			}
			if a.Tool == "b.get" {
				time.Sleep(10 * time.Second)
			}
			return echo(a, nth)
		}
		if res := w.slice(w.start("r", byProvider, pairs(2, 0)...)); res.Outcome != run.Done {
			t.Errorf("the slice ended %s, want done", res.Outcome)
		}
		if got := w.provider.times("a.get", ""); !near(got, seconds(0, 6)) {
			t.Errorf("the spent row was asked for at %v, want 0 and 6 s", got)
		}
	})
}

func TestQ2SpentRowsDoNotKeepAnIdleSliceAlive(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "", holds(6*time.Second))
		begun := time.Now()
		w.parked(w.start("r", callA, rows(1)...))
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("the slice stayed for %v", took)
		}
	})
}

const threeOfA = `
version: 1
name: three
columns:
  - {name: one, call: a.get, when: "${row.p == 'a'}", with: {x: "${row.x + '1'}"}, result: "${result.x}"}
  - {name: two, call: a.get, when: "${row.p == 'a'}", with: {x: "${row.x + '2'}"}, result: "${result.x}"}
  - {name: three, call: a.get, when: "${row.p == 'a'}", with: {x: "${row.x + '3'}"}, result: "${result.x}"}
  - {name: four, call: b.get, when: "${row.p == 'b'}", with: {x: "${row.x}"}, result: "${result.x}"}
`

func heldEach(d, other time.Duration) func(call.Attempt, int) call.Answer {
	return func(a call.Attempt, nth int) call.Answer {
		if a.Tool == "b.get" {
			time.Sleep(other)
			return echo(a, nth)
		}
		if nth == 0 {
			return heldFor(d)
		}
		return echo(a, nth)
	}
}

// Three calls of a row are held for 2 s each. Each would fit its own budget; together they are 6 s of idleness.
func TestQ3IdleResidencyIsFiveSecondsInTotal(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = heldEach(2*time.Second, 0)
		begun := time.Now()
		wait := w.parked(w.start("r", threeOfA, "x,p", "r0,a"))
		if took := time.Since(begun); !near([]time.Duration{took, wait}, seconds(4, 2)) {
			t.Errorf("parked after %v for %v, want 4 s and 2 s", took, wait)
		}
	})
}

func TestQ3OnlyARowThatCompletesResetsTheIdleClock(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = heldEach(2*time.Second, 3*time.Second)
		if res := w.slice(w.start("r", threeOfA, "x,p", "r0,a", "r1,b")); res.Outcome != run.Done {
			t.Errorf("the slice ended %s, want done: another row completed at 3 s", res.Outcome)
		}
	})
}

// A provider in trouble tells everybody to come back in a few seconds, for minutes. However many rows wait for their
// turn behind the first ones, the slice does not stay for it.
func TestQ3ProviderThatHoldsEverybodyKeepsNoSliceAlive(t *testing.T) {
	for _, d := range seconds(0.5, 3, 4.9) {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			begun := time.Now()
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				time.Sleep(20 * time.Millisecond)
				if time.Since(begun) < time.Minute {
					return heldFor(d)
				}
				return echo(a, nth)
			}
			job := w.start("r", callA, rows(300)...)
			res := w.slice(job)
			if took := time.Since(begun); res.Outcome != run.Parked || took > 6*time.Second {
				t.Errorf("holds of %v: the slice ended %s after %v, want parked within 5 s", d, res.Outcome, took)
			}
			time.Sleep(time.Until(res.WakeAt))
			w.finish(job)
		})
	}
}

// While every row waits, nobody asks the provider, and nobody reads or writes the store, but for the one small read a
// second by which a run hears that it is cancelled.
func TestQ4WaitingAsksNobody(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(4*time.Second))
		job := w.start("r", callA, rows(50)...)
		var before, after atomic.Int64
		count := func() int64 { return int64(f.Count()-looks(f)) + int64(len(w.provider.log())) }
		time.AfterFunc(900*time.Millisecond, func() { before.Store(count()) })
		time.AfterFunc(3900*time.Millisecond, func() { after.Store(count()) })
		if res := w.slice(job); res.Outcome != run.Done {
			t.Fatal(res.Outcome)
		}
		if before.Load() == 0 || before.Load() != after.Load() {
			t.Errorf("%d operations and calls while all rows waited", after.Load()-before.Load())
		}
		if n := looks(f); n < 4 || n > 5 { // at the start, and each second
			t.Errorf("the control item was read %d times in 4 s", n)
		}
	})
}

// looks is how often somebody looked at what is asked of the run.
func looks(f *tabletest.Faulty) int {
	n := 0
	for _, e := range f.Trace() {
		if e.Op == tabletest.OpGet && e.Keys[0].Sort == "control" {
			n++
		}
	}
	return n
}

// The only place is taken for 20 s, and a held row becomes due meanwhile: fake time would stand still if the loop looked
// for a place again and again.
func TestQ4DueRowWithoutAPlaceIsNotPolledFor(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = heldEach(2*time.Second, 20*time.Second)
		job := w.start("r", byProvider, pairs(2, 0)...)
		w.finish(job)
		if n := f.Count(); n > 100 {
			t.Errorf("%d operations of the store for two rows", n)
		}
		if got := w.provider.times("a.get", ""); !near(got, seconds(0, 20)) {
			t.Errorf("asked at %v, want 0 and 20 s", got)
		}
	})
}

func TestQ5ResumedRowKeepsItsIndex(t *testing.T) {
	const indexed = `
version: 1
name: indexed
key: x
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x + ':' + string(index)}"}
  - {name: at, value: "${index}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "b", holds(time.Hour))
		job := w.start("r", indexed, "x", "a", "a", "b", "c", "a", "d")
		w.parked(job)
		if cp := w.checkpoint(job); cp.Pending[0].Index != 2 {
			t.Errorf("pending %+v, want index 2", cp.Pending)
		}
		if got, want := w.finish(w.reload(job)), "x,one,at\na,a:0,0\nb,b:2,2\nc,c:3,3\nd,d:5,5\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Nine rows wait for their turn behind a hold of 2 s. The call that met it goes first, and says that it is a retry.
func TestQ6RetryIsAheadOfFirstAttempts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = scripted("a.get", `"r0"`, holds(2*time.Second))
		w.finish(w.start("r", callA, rows(10)...))
		var order []string
		for _, a := range w.provider.log() {
			if a.at >= 1900*time.Millisecond {
				order = append(order, a.input)
			}
			if want := strings.Contains(a.input, `"r0"`) && a.at > time.Second; a.retry != want {
				t.Errorf("%s at %v: retry %v", a.input, a.at, a.retry)
			}
		}
		if len(order) != 10 || !strings.Contains(order[0], `"r0"`) {
			t.Errorf("asked %v, want r0 first", order)
		}
	})
}

func TestQ9WaitingSetIsBounded(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.MaxWaiting, w.settings.Concurrency = 10, 4
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth == 0 {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		job := w.start("r", callA, rows(100)...)
		w.parked(job)
		if cp := w.checkpoint(job); len(cp.Pending) < 10 || len(cp.Pending) > 14 || cp.Cursor != int64(len(cp.Pending)) {
			t.Errorf("%d rows pending, %d admitted, want 10 to 14", len(cp.Pending), cp.Cursor)
		}
		if got := w.finish(job); strings.Count(got, "\n") != 101 {
			t.Errorf("%d lines", strings.Count(got, "\n"))
		}
	})
}

func TestQ9CheckpointStaysSmall(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(call.Attempt, int) call.Answer {
			held := heldFor(time.Hour)
			held.Scope = "acme-16f16e39ea52"
			return held
		}
		job := w.start("r", callA, rows(5000)...)
		w.parked(job)
		for _, item := range items(t, tbl, "run/r/shard/0000", "checkpoint") {
			cp := w.checkpoint(job)
			t.Logf("%d rows pending: a checkpoint of %d bytes", len(cp.Pending), len(item.Data))
			if len(cp.Pending) < run.MaxWaiting || len(item.Data) > 32<<10 {
				t.Errorf("%d rows pending take %d bytes, want at most 32 KB", len(cp.Pending), len(item.Data))
			}
		}
	})
}

// Where batches are billed, calls that come within a moment travel together.
func TestCallsWaitForCompany(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Linger = 25 * time.Millisecond
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Duration(len(a.Input)%7) * time.Millisecond) // they come back one after the other
			return echo(a, nth)
		}
		w.finish(w.start("r1", twoCalls, rows(128)...))
		if n := w.provider.batches; n > 12 { // 256 calls, up to 64 at once
			t.Errorf("%d batches", n)
		}
	})
}
