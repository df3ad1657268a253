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
