package pacer_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// onStores runs a story under a fake clock on every local store.
func onStores(t *testing.T, story func(t *testing.T, tbl table.Table)) {
	stores := map[string]func(t *testing.T) table.Table{
		"memory": func(*testing.T) table.Table { return memory.New() },
		"sqlite": func(t *testing.T) table.Table {
			tbl, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := tbl.Close(); err != nil {
					t.Error(err)
				}
			})
			return tbl
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { story(t, open(t)) })
		})
	}
}

// fleet is several owners who share a table, each working off calls as a gateway does.
type fleet struct {
	mu   sync.Mutex
	sent []time.Time
}

func (f *fleet) record(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, t)
}

// run dispatches n calls through p and returns the number of asks.
func (f *fleet) run(t *testing.T, p *pacer.Pacer, w pacer.Want, n int) (asks int) {
	t.Helper()
	for n > 0 {
		w.N = min(n, 64)
		g, err := p.Acquire(t.Context(), "acme", w)
		if err != nil {
			t.Error(err)
			return asks
		}
		asks++
		for _, permit := range g.Permits {
			time.Sleep(time.Until(permit.At))
			if !p.Check(t.Context(), permit) {
				t.Errorf("permit at %v is void", permit.At)
			}
			f.record(time.Now())
			n--
		}
		p.Done("acme", len(g.Permits))
		if len(g.Permits) < w.N {
			time.Sleep(time.Until(g.AskAt))
		}
	}
	return asks
}

// strict fails if more than rate dispatches lie in any window of length per.
func strict(t *testing.T, sent []time.Time, rate int, per time.Duration) {
	t.Helper()
	slices.SortFunc(sent, time.Time.Compare)
	for i := rate; i < len(sent); i++ {
		if d := sent[i].Sub(sent[i-rate]); d < per {
			t.Fatalf("%d dispatches within %v, allowed are %d per %v", rate+1, d, rate, per)
		}
	}
}

func TestH17SteadyRateFillsItsWindowAndNeverExceedsIt(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		var f fleet
		p := pacer.New(tbl, "a")
		start := time.Now()
		asks := f.run(t, p, pacer.Want{Rules: []pacer.Rule{{Rate: 50, Per: time.Second}}}, 3000)
		strict(t, f.sent, 50, time.Second)
		if took := time.Since(start); took < 57*time.Second || took > 63*time.Second {
			t.Errorf("3,000 calls at 50/s took %v, want 60 s within 5 %%", took)
		}
		if asks > 300 {
			t.Errorf("%d asks for 3,000 calls", asks)
		}
	})
}

func TestH17TwoOwnersShareOneLimit(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		var f fleet
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				p := pacer.New(tbl, fmt.Sprint("owner", i))
				f.run(t, p, pacer.Want{Rules: []pacer.Rule{{Rate: 50, Per: time.Second}}}, 1500)
			})
		}
		wg.Wait()
		strict(t, f.sent, 50, time.Second)
		if took := time.Since(start); took < 57*time.Second || took > 63*time.Second {
			t.Errorf("3,000 calls at 50/s by two took %v, want 60 s within 5 %%", took)
		}
	})
}

// In bulk, two owners who take turns use a limit in full, with an ask and a write for each burst: they read what the other
// has written before they write.
func TestH17InBulkTwoOwnersUseTheLimitInFull(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		var f fleet
		meter := table.Meter(tbl)
		var owners [2]*pacer.Pacer
		for i := range owners {
			owners[i] = pacer.New(meter, fmt.Sprint("owner", i))
			owners[i].Bulk = true
		}
		start := time.Now()
		const bursts = 60
		for i := range bursts {
			if asks := f.run(t, owners[i%2], pacer.Want{Rules: []pacer.Rule{{Rate: 50, Per: time.Second}}}, 50); asks > 2 {
				t.Errorf("burst %d took %d asks", i, asks)
			}
		}
		strict(t, f.sent, 50, time.Second)
		if took := time.Since(start); took < 59*time.Second || took > 63*time.Second {
			t.Errorf("3,000 calls at 50/s took %v, want 60 s within 5 %%", took)
		}
		const listed = 1 // the scope's name, for people
		if u := meter.Usage(); u.ItemsWritten != bursts+listed || u.WriteUnits != bursts+listed {
			t.Errorf("%d writes, %d units, want one for each of %d bursts and one for its name", u.ItemsWritten, u.WriteUnits, bursts)
		}
	})
}

func TestH17LongWindowsAreUsedAsBursts(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		var f fleet
		p := pacer.New(tbl, "a")
		start := time.Now()
		f.run(t, p, pacer.Want{Rules: []pacer.Rule{{Rate: 600, Per: time.Minute}}}, 1200)
		strict(t, f.sent, 600, time.Minute)
		if took := time.Since(start); took < time.Minute || took > 61*time.Second {
			t.Errorf("two bursts took %v, want one minute", took)
		}
		if gap := f.sent[599].Sub(f.sent[0]); gap > time.Second {
			t.Errorf("the first burst took %v", gap)
		}
	})
}

func TestH17AllRulesMustAllow(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		var f fleet
		p := pacer.New(tbl, "a")
		rules := []pacer.Rule{{Rate: 20, Per: time.Second, Burst: 5}, {Rate: 100, Per: 20 * time.Second}}
		f.run(t, p, pacer.Want{Rules: rules}, 350)
		strict(t, f.sent, 20, time.Second)
		strict(t, f.sent, 100, 20*time.Second)
	})
}

func TestH17AskOverConcurrencyIsDeniedWithATime(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		ctx := t.Context()
		a, b := pacer.New(tbl, "a"), pacer.New(tbl, "b")
		w := pacer.Want{N: 10, Rules: []pacer.Rule{{Rate: 1000, Per: time.Second}}, Concurrency: 4}
		g, err := a.Acquire(ctx, "acme", w)
		if err != nil || len(g.Permits) != 4 || g.Reason != pacer.Concurrency {
			t.Fatalf("got %d permits, reason %q, error %v; want 4 of 10 by concurrency", len(g.Permits), g.Reason, err)
		}
		g, err = b.Acquire(ctx, "acme", w)
		if err != nil || len(g.Permits) != 0 || g.Reason != pacer.Concurrency {
			t.Fatalf("got %d permits, reason %q, error %v; want none", len(g.Permits), g.Reason, err)
		}
		if wait := time.Until(g.Next); wait < 50*time.Millisecond || wait > 200*time.Millisecond {
			t.Errorf("asked to come back after %v", wait)
		}
		a.Done("acme", 4)
		time.Sleep(500 * time.Millisecond) // idle slots are given back
		g, err = b.Acquire(ctx, "acme", w)
		if err != nil || len(g.Permits) != 4 {
			t.Fatalf("got %d permits after the other went idle, error %v; want 4", len(g.Permits), err)
		}
	})
}

// What a dead process held is free at once, where its death can be told; otherwise when its lease ends.
func TestConcurrencyOfADeadOwnerIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := memory.New()
		want := pacer.Want{N: 4, Rules: []pacer.Rule{{Rate: 1000, Per: time.Second, Burst: 1000}}, Concurrency: 4}
		acquired := func(p *pacer.Pacer) int {
			g, err := p.Acquire(t.Context(), "s", want)
			if err != nil {
				t.Fatal(err)
			}
			return len(g.Permits)
		}
		if n := acquired(pacer.New(tbl, "dead")); n != 4 {
			t.Fatalf("the first owner got %d of 4", n)
		}
		doubts, knows := pacer.New(tbl, "doubts"), pacer.New(tbl, "knows")
		if n := acquired(doubts); n != 0 {
			t.Errorf("%d slots of an owner that may live were given away", n)
		}
		knows.Alive = func(owner string) bool { return owner == "knows" }
		if n := acquired(knows); n != 4 {
			t.Errorf("%d of 4 slots of a dead owner are free", n)
		}
	})
}
