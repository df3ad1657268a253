package pacer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// idleFor is how long leased concurrency may lie unused before it is given back.
const idleFor = 200 * time.Millisecond

// scope is what a Pacer knows of one scope: the queue of what is to be written next, and what it saw last.
type scope struct {
	store
	bulk      bool
	mu        sync.Mutex
	queue     batch
	serving   bool
	use       int       // slots in use
	leased    int       // slots leased, as of the last write
	asked     time.Time // when permits were last asked for
	idle      *time.Timer
	freed     chan struct{} // closed when a slot comes free, if anybody waits for one
	hold      time.Time     // the latest known hold
	heldBy    Cause         // and why
	unsaved   time.Time     // a hold that could not be written yet
	next      time.Time     // no further permit before this, under nextFor
	askAt     time.Time     // when asking for it makes sense
	nextFor   []Rule
	success   time.Time     // dispatch time of the latest success
	lead      time.Duration // what a write takes
	late      time.Duration // for how long this process stood still, not yet in the state
	applied   time.Duration // as much of it is in the state that is being written
	seenAt    time.Time     // when the state was last read or written
	refusals  int           // in a row, where the store could not be asked
	tight     time.Time     // when a call was last held up by how many may be in flight
	nextTight bool          // so does who asks before next
	sample    Sample        // of answers that are not yet in the state
	sampled   Sample        // as much of it is in the state that is being written

	lateUntil time.Time     // permits of up to then are late together
	lateBy    time.Duration // by so much, as far as is known
}

// batch is what one write serves.
type batch struct {
	asks    []*ask
	reports []*report
	shrinks []chan error
}

func (b batch) empty() bool { return len(b.asks)+len(b.reports)+len(b.shrinks) == 0 }

// denied answers from what is known, without the store: holds and windows only ever move later.
func (s *scope) denied(now time.Time, w Want) (Grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = now
	limit := now.Add(horizon(s.bulk) + s.lead)
	if s.hold.After(limit) {
		return Grant{Reason: Held, Next: latest(s.hold, s.next), AskAt: s.when(), Hold: s.hold, HeldBy: s.heldBy}, true
	}
	if s.next.After(limit) && slices.Equal(s.nextFor, w.Rules) && s.next.Before(limit.Add(longest(w.Rules))) {
		if s.nextTight {
			s.tight = s.next.Add(tightFor)
		}
		return Grant{Reason: Window, Next: s.next, AskAt: s.when()}, true
	}
	return Grant{}, false
}

// when is when asking for the next permit makes sense, under the lock.
func (s *scope) when() time.Time {
	return latest(s.hold.Add(-ahead(s.bulk)-s.lead), s.askAt)
}

// longest bounds how far away a full window can free. What lies beyond was seen under a clock that has since jumped.
func longest(rules []Rule) (d time.Duration) {
	for _, r := range rules {
		d = max(d, time.Duration(r.normal().window()))
	}
	return d
}

func (s *scope) enqueue(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.asks = append(s.queue.asks, a)
	s.start()
}

// shrink gives back the concurrency that is not in use, and shares how late calls were.
func (s *scope) shrink(ctx context.Context) error {
	s.mu.Lock()
	if s.leased <= s.use && (!s.bulk || s.late == 0) {
		s.mu.Unlock()
		return nil
	}
	done := make(chan error, 1)
	s.queue.shrinks = append(s.queue.shrinks, done)
	s.start()
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start runs the serving goroutine if there is none. The caller holds the lock.
func (s *scope) start() {
	if !s.serving {
		s.serving = true
		go s.serve()
	}
}

func (s *scope) serve() {
	for {
		b, ok := s.take()
		if !ok {
			return
		}
		s.round(b)
	}
}

// take removes from the queue what the next write can serve: all reports, and the asks under the limits of the first.
func (s *scope) take() (batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.empty() {
		s.serving = false
		return batch{}, false
	}
	b := batch{reports: s.queue.reports, shrinks: s.queue.shrinks}
	var rest []*ask
	for _, a := range s.queue.asks {
		switch {
		case a.ctx.Err() != nil:
			a.err = a.ctx.Err()
			close(a.done)
		case len(b.asks) == 0 || a.sameLimits(b.asks[0]):
			b.asks = append(b.asks, a)
		default:
			rest = append(rest, a)
		}
	}
	s.queue = batch{asks: rest}
	return b, true
}

// abandon is called when nobody waits for the ask any more.
func (s *scope) abandon(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.abandoned = true
	select {
	case <-a.done: // it was granted after all; its permits are void
		s.free(len(a.grant.Permits))
	default:
	}
}

func (s *scope) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(n)
}

func (s *scope) free(n int) {
	s.use = max(s.use-n, 0)
	if s.freed != nil && s.leased > s.use {
		close(s.freed)
		s.freed = nil
	}
	if s.leased > s.use && s.idle == nil {
		s.idle = time.AfterFunc(idleFor, s.whenIdle)
	}
}

// slotFreed returns a channel that is closed when a slot of this owner comes free; nil if it has none in use.
func (s *scope) slotFreed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use == 0 {
		return nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	freed := s.freed
	if s.leased > s.use { // while nobody looked
		close(freed)
		s.freed = nil
	}
	return freed
}

// whenIdle gives unused slots back, unless permits were asked for just now.
func (s *scope) whenIdle() {
	s.mu.Lock()
	s.idle = nil
	unused := s.leased > s.use
	if unused && time.Since(s.asked) < idleFor {
		s.idle = time.AfterFunc(idleFor, s.whenIdle)
		unused = false
	}
	s.mu.Unlock()
	if unused {
		_ = s.shrink(context.Background()) // if it cannot be written, the lease expires
	}
}

func (s *scope) nextFree(now time.Time) (time.Time, Reason, Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.when()
	switch {
	case !t.After(now):
		return time.Time{}, Granted, Cause{}
	case s.hold.After(now) && !s.hold.Before(t):
		return t, Held, s.heldBy
	}
	return t, Window, Cause{}
}
