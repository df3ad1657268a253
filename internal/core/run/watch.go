package run

import (
	"sync"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// Watch lets a display look at a slice while it is at work. The nil Watch is not looked at.
type Watch struct {
	mu   sync.Mutex
	s    *slice
	last Snapshot // of the slice that ended last
}

// Snapshot is how a slice stands.
type Snapshot struct {
	Counts  sheet.Counts // rows whose end is durable
	Stats   sheet.Stats
	AtWork  int // rows being computed or called for
	Turning int // rows waiting for their turn at a provider
	Held    int // rows on hold
	Holds   []ScopeHold
}

// ScopeHold is a provider that is not to be asked before a time.
type ScopeHold struct {
	Provider string
	Until    time.Time
	Rows     int // rows that wait for their turn; held rows are not told apart by provider
	Reason   *call.Error
}

func (w *Watch) attach(s *slice) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.s = s
	w.mu.Unlock()
}

func (w *Watch) detach(s *slice) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s == s {
		w.s, w.last = nil, s.snapshot()
	}
}

// Last returns how the slice stood that ended last: what a run that is parked is waiting for.
func (w *Watch) Last() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Snapshot returns how the slice stands; false while none is at work.
func (w *Watch) Snapshot() (Snapshot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s == nil {
		return Snapshot{}, false
	}
	return w.s.snapshot(), true
}

func (s *slice) snapshot() Snapshot {
	snap := Snapshot{Stats: s.tally.stats()}
	snap.Counts, _ = s.journal.Counted()
	s.pool.mu.Lock()
	snap.AtWork, snap.Turning, snap.Held = s.pool.atWork, s.pool.turning, s.pool.held.Len()
	s.pool.mu.Unlock()
	now := time.Now()
	for name, l := range s.caller.lanes {
		l.mu.Lock()
		if l.closed.After(now) {
			snap.Holds = append(snap.Holds, ScopeHold{Provider: name, Until: l.closed, Rows: len(l.queue), Reason: l.reason})
		}
		l.mu.Unlock()
	}
	return snap
}
