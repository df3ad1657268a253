package run

import (
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// Watch lets a display look at a run's slices while they are at work. The nil Watch is not looked at.
type Watch struct {
	mu   sync.Mutex
	work map[int]*slice   // by place
	last map[int]Snapshot // of the slice that ended last in each place
}

// Snapshot is how a slice stands, or all slices of a run together.
type Snapshot struct {
	Counts  sheet.Counts // rows whose end is durable
	Stats   sheet.Stats
	AtWork  int           // rows being computed or called for
	Turning int           // rows waiting for their turn at a provider
	Held    int           // rows on hold
	Waits   sheet.Waiting // rows that wait for answers, or sleep
	Holds   []ScopeHold
	Ending  bool    // the rows have ended, and the steps of `finish` are at work
	Halting Outcome // Paused or Cancelled: what the slices have been asked for, and are about; empty: nothing
}

// ScopeHold is a provider that is not to be asked before a time.
type ScopeHold struct {
	Provider string
	Until    time.Time
	Rows     int // rows that wait for their turn; held rows are not told apart by provider
	Why      call.Why
}

func (w *Watch) attach(s *slice) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.work == nil {
		w.work, w.last = map[int]*slice{}, map[int]Snapshot{}
	}
	w.work[s.place()] = s
}

// place tells the slices of a run apart: by their shard, and before all of these the one of its end.
func (s *slice) place() int {
	if s.job.ending != nil {
		return -1
	}
	return s.shard
}

func (w *Watch) detach(s *slice) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.work[s.place()] == s {
		delete(w.work, s.place())
		w.last[s.place()] = s.snapshot()
	}
}

// Last returns how the slices stood that ended last: what a run that is parked is waiting for.
func (w *Watch) Last() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum()
}

// Snapshot returns how the slices stand; false while none is at work.
func (w *Watch) Snapshot() (Snapshot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum(), len(w.work) > 0
}

// sum adds up the shards, each as it is or as it was last, under the lock.
func (w *Watch) sum() Snapshot {
	var all Snapshot
	for place, snap := range w.last {
		if w.work[place] == nil {
			all.add(snap)
		}
	}
	for _, s := range w.work {
		all.add(s.snapshot())
	}
	slices.SortFunc(all.Holds, func(a, b ScopeHold) int { return strings.Compare(a.Provider, b.Provider) })
	return all
}

func (a *Snapshot) add(b Snapshot) {
	a.Counts, a.Stats = a.Counts.Plus(b.Counts), a.Stats.Plus(b.Stats)
	a.Ending = a.Ending || b.Ending
	a.Waits = a.Waits.Plus(b.Waits)
	a.AtWork, a.Turning, a.Held = a.AtWork+b.AtWork, a.Turning+b.Turning, a.Held+b.Held
	if b.Halting != "" {
		a.Halting = b.Halting
	}
	for _, h := range b.Holds {
		i := slices.IndexFunc(a.Holds, func(known ScopeHold) bool { return known.Provider == h.Provider })
		if i < 0 {
			a.Holds = append(a.Holds, h)
			continue
		}
		a.Holds[i].Rows += h.Rows
		a.Holds[i].Until = later(a.Holds[i].Until, h.Until)
	}
}

func (s *slice) snapshot() Snapshot {
	snap := Snapshot{Stats: s.tally.stats(), Ending: s.job.ending != nil, Halting: s.halt()}
	if !snap.Ending { // a step is no row
		snap.Counts, _ = s.journal.Counted()
		snap.Waits = s.away.waiting()
	}
	s.pool.mu.Lock()
	snap.AtWork, snap.Turning, snap.Held = s.pool.atWork, s.pool.turning, s.pool.held.Len()
	s.pool.mu.Unlock()
	now := time.Now()
	for name, l := range s.caller.lanes {
		l.mu.Lock()
		if l.closed.After(now) {
			snap.Holds = append(snap.Holds, ScopeHold{Provider: name, Until: l.closed, Rows: len(l.queue), Why: l.why})
		}
		l.mu.Unlock()
	}
	return snap
}
