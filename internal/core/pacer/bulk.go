package pacer

import (
	"slices"
	"time"
)

// Where waiting is billed by the millisecond, and every batch of calls besides, a scope is used in bulk: short windows
// are not spaced out, permits are granted only for now, and who has used a burst up is told to come again when the next
// one is whole. The promise of a rule is the same: at most Rate dispatches in any window, and as before at most a burst
// of them back to back, where a provider declares one.

const (
	// bulkHorizon is how far ahead permits are granted in bulk: as long as asking again would take.
	bulkHorizon = 60 * time.Millisecond
	// bulkAhead is how long before the moment of the next burst a scope may be asked: what it takes to begin.
	bulkAhead = 20 * time.Millisecond
	// bulkFresh is how old the known state may be when it is written over. Others write as well, and a write that loses
	// its race costs five times as much as a read.
	bulkFresh = 20 * time.Millisecond
	// bulkOften is how often a longer window is used, as long as it is not one to be parked for (shortWindow).
	bulkOften = time.Second
	// bulkMost is as much as anybody asks for at once.
	bulkMost = 64
	// bulkWhole is how long a burst is waited for of which a part could be had.
	bulkWhole = 1250 * time.Millisecond
)

// inBulk gives the rules that leave it open their burst: all of a window of up to a second, and of one up to shortWindow
// as much as a second's share.
func inBulk(rules []Rule) []Rule {
	out := make([]Rule, len(rules))
	for i, r := range rules {
		if r.Burst <= 0 && r.Per <= shortWindow {
			r.Burst = max(1, int(int64(r.Rate)*int64(min(bulkOften, r.Per))/int64(max(r.Per, 1))))
		}
		out[i] = r
	}
	return out
}

// whole is when a whole burst can be had, of the rule with the smallest one, or as much of it as one asks for. A rule whose
// burst is less than its rate saves up, and nothing is lost by waiting for it. A full window loses what it does not use once
// it frees, so that its burst is waited for no longer than bulkWhole.
func (f *flow) whole() int64 {
	at := f.next
	if len(f.own) == 0 {
		return at
	}
	burst := bulkMost
	for _, i := range f.own {
		burst = min(burst, f.s.Rules[i].Burst)
	}
	for _, i := range f.own {
		if r := f.s.Rules[i]; r.Burst < r.Rate {
			at = max(at, r.TAT-int64(r.Burst-burst)*f.rules[i].interval)
		}
	}
	state := State{Rules: slices.Clone(f.s.Rules), Log: slices.Clone(f.s.Log), Last: f.s.Last, Hold: f.s.Hold}
	later := state.flow(f.next, f.every, f.own)
	for range burst {
		if later.next > f.next+int64(bulkWhole) {
			break
		}
		at = max(at, later.next)
		later.take()
	}
	return at
}

func horizon(bulk bool) time.Duration {
	if bulk {
		return bulkHorizon
	}
	return Horizon
}

func ahead(bulk bool) time.Duration {
	if bulk {
		return bulkAhead
	}
	return Ahead
}
