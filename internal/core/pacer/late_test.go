package pacer

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/memory"
)

// H17: when a process stood still for 100 ms, the calls that were on their way may have arrived so much later. Those
// that follow them in their windows come later by as much; without a pause, nothing moves.
func TestH17CallsAfterAStallComeLater(t *testing.T) {
	for _, rule := range []Rule{{Rate: 50, Per: time.Second}, {Rate: 50, Per: time.Second, Burst: 50}} {
		for _, stall := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				p := New(memory.New(), "me")
				var at []time.Time
				take := func(n int) {
					for until := len(at) + n; len(at) < until; {
						g, err := p.Acquire(t.Context(), "s", Want{N: until - len(at), Rules: []Rule{rule}})
						if err != nil {
							t.Fatal(err)
						}
						for _, permit := range g.Permits {
							at = append(at, permit.At)
						}
						if len(at) < until {
							time.Sleep(time.Until(g.AskAt))
						}
					}
				}
				take(50)
				if stall > 0 {
					p.Stalled(stall)
				}
				take(50)
				apart := at[50].Sub(at[0]) // the first of the next window, and the first call
				want := time.Second
				if stall > 15*time.Millisecond { // half the slack
					want += stall
				}
				if apart < want || apart > want+60*time.Millisecond {
					t.Errorf("burst %d, stall %v: 50 calls later is %v later", rule.Burst, stall, apart)
				}
			})
		}
	}
}

// H17: calls of a burst that had to connect first leave late, and the next burst finds connections that are ready. Whoever
// asks for it, in whatever process, gets it later by as much.
func TestH17InBulkABurstThatLeavesLateMovesTheNext(t *testing.T) {
	for _, late := range []time.Duration{0, 10 * time.Millisecond, 180 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			tbl := memory.New()
			a, b := New(tbl, "a"), New(tbl, "b")
			a.Bulk, b.Bulk = true, true
			want := Want{N: 20, Rules: []Rule{{Rate: 20, Per: time.Second}}, Concurrency: 100}
			var left []time.Time
			burst := func(p *Pacer, late time.Duration) {
				for n := 20; n > 0; {
					g, err := p.Acquire(t.Context(), "s", want)
					if err != nil {
						t.Fatal(err)
					}
					for _, permit := range g.Permits { // one after the other, the last one as late as can be
						n--
						time.Sleep(time.Until(permit.At.Add(late - time.Duration(n)*late/100)))
						left = append(left, time.Now())
						p.Late(permit, time.Since(permit.At))
					}
					time.Sleep(80 * time.Millisecond) // the answers
					p.Done("s", len(g.Permits))
					if free, _, _ := p.NextFree("s"); len(g.Permits) > 0 && free.Before(left[len(left)-1].Add(900*time.Millisecond)) {
						t.Errorf("late by %v: free again after %v", late, time.Since(free))
					}
					if err := p.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
					if len(g.Permits) < 20 {
						time.Sleep(time.Until(g.AskAt))
					}
				}
			}
			start := time.Now()
			burst(a, late)
			burst(b, 0)
			burst(a, 0)
			for i := 20; i < len(left); i++ {
				if d := left[i].Sub(left[i-20]); d < time.Second {
					t.Fatalf("late by %v: 21 calls within %v", late, d)
				}
			}
			lost := late
			if late <= 15*time.Millisecond { // half the slack
				lost = 0
			}
			if took := time.Since(start); took > 2*1030*time.Millisecond+lost+150*time.Millisecond {
				t.Errorf("late by %v: three bursts took %v", late, took)
			}
		})
	}
}
