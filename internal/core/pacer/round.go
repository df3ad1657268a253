package pacer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/hold"
)

const (
	// roundTimeout bounds one round of reading and writing. It outlives the callers, whose cancellation must not
	// leave others without their answer.
	roundTimeout = 15 * time.Second
	// maxUncertain is how many writes with an unknown end one round survives.
	maxUncertain = 5
	// maxLead bounds how far a slow store pushes permits away. Without that push, permits would be void when the write
	// that grants them ends.
	maxLead = 2 * time.Second
	// maxPause bounds the pause after a lost race, where the store is fast.
	maxPause = 64 * time.Millisecond
)

// round serves a batch with one write, repeated until it wins its race.
func (s *scope) round(b batch) {
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	s.fresh = false
	uncertain := 0
	for try := 0; ; try++ {
		if !s.cached || s.bulk && time.Since(s.read) > bulkFresh {
			if err := s.reload(ctx); err != nil {
				s.fail(b, err)
				return
			}
		}
		next, g, write := s.apply(time.Now(), b)
		if !write {
			if g.Reason == Concurrency && !s.fresh {
				s.cached = false // others may have given slots back
				continue
			}
			s.sampled = Sample{} // not written down
			s.finish(b, g)
			return
		}
		written, err := s.put(ctx, next)
		var maybe *uncertainError
		if errors.As(err, &maybe) && uncertain < maxUncertain {
			uncertain++
			err = nil
		}
		switch {
		case written:
			s.finish(b, g)
			return
		case err != nil:
			s.fail(b, err)
			return
		}
		s.pause(ctx, try)
	}
}

// apply computes what the batch makes of the cached state.
func (s *scope) apply(now time.Time, b batch) (next State, g Grant, write bool) {
	s.mu.Lock()
	use, success, unsaved, unsavedBy, late, sample, tight := s.use, s.success, s.unsaved, s.heldBy, s.late, s.sample, s.tight
	s.mu.Unlock()
	next = s.state.clone()
	s.applied, s.sampled = 0, Sample{}
	if late > 0 && len(b.asks)+len(b.shrinks) > 0 {
		write = next.delay(int64(late))
		s.applied = late
	}
	if !unsaved.IsZero() {
		_, changed := next.observe(now, s.name, s.owner, Observation{Deadline: unsaved})
		if changed {
			next.HeldBy = unsavedBy
		}
		write = write || changed
	}
	for _, r := range b.reports {
		var changed bool
		r.until, changed = next.observe(now, s.name, s.owner, r.Observation)
		write = write || changed
	}
	if l, ok := next.Leases[s.owner]; ok && len(b.shrinks) > 0 && l.N > use {
		l.N, l.Want = use, use
		next.setLease(s.owner, l)
		if use == 0 {
			delete(next.Leases, s.owner)
		}
		write = true
	}
	if len(b.asks) == 0 {
		return next, g, write
	}
	ask := Ask{Owner: s.owner, Lead: s.expected(), InUse: use, Success: success, Bulk: s.bulk}
	ask.Rules, ask.Concurrency = b.asks[0].Rules, b.asks[0].Concurrency
	for _, a := range b.asks {
		ask.N += a.N
		ask.LeaseFor = max(ask.LeaseFor, a.Longest)
	}
	if ask.Adaptive = b.asks[0].Adaptive; ask.Adaptive {
		sample.Tight = now.Before(tight)
		ask.Seen, s.sampled = sample, sample
	}
	next, g, changed := Decide(now, next, ask)
	return next, g, write || changed
}

// finish takes note of what was stored and answers everybody.
func (s *scope) finish(b batch, g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		s.seenAt = time.Now()
	}
	s.lead = s.expected()
	s.late -= min(s.applied, s.late)
	if len(b.asks) == 0 {
		s.next, s.askAt = s.next.Add(s.applied), s.askAt.Add(s.applied)
	}
	s.holdUntil(moment(s.state.Hold), s.state.HeldBy)
	if !s.unsaved.After(moment(s.state.Hold)) {
		s.unsaved = time.Time{}
	}
	s.leased = s.state.Leases[s.owner].N
	s.sample = s.sample.less(s.sampled)
	if len(b.asks) > 0 {
		s.nextTight = g.Tight
		if g.Tight && g.Reason != Granted {
			s.tight = latest(g.Next, time.Now()).Add(tightFor)
		}
		if g.Reason != Concurrency {
			s.next, s.askAt, s.nextFor = g.Next, g.AskAt, b.asks[0].Rules
		}
		divide(s.name, g, b.asks)
	}
	for _, a := range b.asks {
		if a.Concurrency > 0 && !a.abandoned {
			s.use += len(a.grant.Permits)
		}
		close(a.done)
	}
	for _, r := range b.reports {
		close(r.done)
	}
	for _, c := range b.shrinks {
		c <- nil
	}
}

func (s *scope) fail(b batch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritten(time.Now(), b.reports)
	err = fmt.Errorf("pacing of %s: %w", s.name, err)
	for _, a := range b.asks {
		a.err = err
		close(a.done)
	}
	for _, r := range b.reports {
		r.err = err
		close(r.done)
	}
	for _, c := range b.shrinks {
		c <- err
	}
}

// divide hands the permits of one grant to the asks: retries first, then in order of arrival.
func divide(scope string, g Grant, asks []*ask) {
	left := g.Permits
	give := func(a *ask, n int) {
		n = min(n, len(left))
		a.grant.Permits = append(a.grant.Permits, left[:n]...)
		left = left[n:]
	}
	for i := range left {
		left[i].Scope = scope
	}
	for _, a := range asks {
		a.grant = Grant{Next: g.Next, AskAt: g.AskAt, Hold: g.Hold, HeldBy: g.HeldBy}
		give(a, min(a.Retries, a.N))
	}
	for _, a := range asks {
		give(a, a.N-len(a.grant.Permits))
		if len(a.grant.Permits) < a.N {
			a.grant.Reason = g.Reason
		}
	}
}

// pause lets others go first after a lost race, longer each time, and each owner for a different while: up to some writes'
// time, because the others' writes take as long.
func (s *scope) pause(ctx context.Context, try int) {
	limit := min(max(time.Millisecond, s.cost/4)<<min(try, 10), max(maxPause, 8*s.cost))
	t := time.NewTimer(time.Duration(hold.Fraction(fmt.Sprintf("%s/%d/%d", s.owner, s.seq, try)) * float64(limit)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
