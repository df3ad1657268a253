package pacer

import (
	"context"
	"time"

	"sluice/internal/core/hold"
)

// maxStale is how old the knowledge of a hold may be when a request leaves (H12).
const maxStale = time.Second

// report queues a refusal, unless what it says is known already.
func (s *scope) report(now time.Time, r *report) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Deadline.IsZero() && !s.hold.Before(r.Deadline) && !s.hold.Equal(s.unsaved) {
		return s.hold, true
	}
	s.holdUntil(r.Deadline, r.cause()) // at once, for whoever is about to dispatch
	s.queue.reports = append(s.queue.reports, r)
	s.start()
	return time.Time{}, false
}

// holdUntil takes note of a hold, under the lock.
func (s *scope) holdUntil(at time.Time, by Cause) {
	if at.After(s.hold) {
		s.hold, s.heldBy = at, by
	}
}

func (s *scope) answered(o Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !o.Slow {
		s.success = latest(s.success, o.Dispatched)
		s.refusals = 0
		s.sample.Peak = max(s.sample.Peak, o.InFlight)
	}
	s.sample.N++
	s.sample.Total += o.Latency
}

func (s *scope) heldUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold
}

func (s *scope) check(ctx context.Context, p Permit) bool {
	for range 2 {
		now := time.Now()
		s.mu.Lock()
		void := s.hold.After(p.Hold) && s.hold.After(p.At) || now.After(p.At.Add(p.Valid))
		stale := now.Sub(s.seenAt) > maxStale
		s.mu.Unlock()
		if void || !stale {
			return !void
		}
		if !s.refresh(ctx) {
			return false
		}
	}
	return false
}

// refresh reads the hold again.
func (s *scope) refresh(ctx context.Context) bool {
	before := time.Now()
	_, st, err := load(ctx, s.tbl, s.name)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seenAt = before
	s.holdUntil(moment(st.Hold), st.HeldBy)
	return true
}

// unwritten keeps the refusals of a round that failed: this owner holds back, and its next write carries the hold.
func (s *scope) unwritten(now time.Time, reports []*report) {
	for _, r := range reports {
		if r.until = r.Deadline; r.until.IsZero() {
			if !s.hold.After(now) {
				s.refusals++
			}
			r.until = latest(s.hold, now.Add(hold.Cooldown(r.Cooldown, max(s.refusals, 1), s.name)))
		}
		s.holdUntil(r.until, r.cause())
		s.unsaved = s.hold
		r.until = s.hold
	}
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
