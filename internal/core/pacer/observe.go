package pacer

import (
	"time"

	"sluice/internal/core/hold"
)

// Observation is what a provider's answer says about its scope.
type Observation struct {
	Dispatched time.Time     // when the request left
	Latency    time.Duration // from then to the end of the answer
	Limited    bool          // the provider refused for its rate; otherwise it answered
	Slow       bool          // it did not answer in time: no success, but a sign of how it is
	Status     int           // Limited: of its answer
	Deadline   time.Time     // Limited: when it may be asked again; zero: it did not say
	Cooldown   time.Duration // Limited without deadline: the base of the cooldown
	Adaptive   bool          // the provider declares nothing (adapt.go)
	InFlight   int           // Adaptive: this owner's calls when it left, itself included
	Start      int           // Adaptive: Want.Concurrency
}

// Cause is what holds a scope: the refusal that named the latest deadline, or led to the longest cooldown.
type Cause struct {
	Status int  `json:"s,omitempty"` // of the provider's answer; 0: not known
	Asked  bool `json:"a,omitempty"` // the provider said until when; otherwise it is the cooldown
}

func (o *Observation) cause() Cause { return Cause{Status: o.Status, Asked: !o.Deadline.IsZero()} }

// observe takes a refusal into the state and returns until when the scope is held now. A deadline only ever moves the
// hold later. A refusal without one escalates the cooldown, but only if its request left after the last escalation:
// ten calls that are refused at once are one refusal.
func (s *State) observe(now time.Time, scope, owner string, o Observation) (until time.Time, changed bool) {
	t := now.UnixNano()
	if o.Adaptive && o.Limited {
		a := s.start(o.Start)
		if changed = a.refuse(t, s.pace(), o.Dispatched.UnixNano(), o.InFlight+s.leasedBy(owner)); changed {
			s.Adapt = a
		}
	}
	switch {
	case !o.Deadline.IsZero():
		return s.holdUntil(o.Deadline.UnixNano(), o.cause(), changed)
	case o.Dispatched.UnixNano() > s.StreakAt:
		s.Streak++
		s.StreakAt = t
		return s.holdUntil(t+int64(hold.Cooldown(o.Cooldown, s.Streak, scope)), o.cause(), true)
	case s.Hold <= t:
		return s.holdUntil(t+int64(hold.Cooldown(o.Cooldown, s.Streak, scope)), o.cause(), changed)
	}
	return time.Unix(0, s.Hold), changed
}

// holdUntil moves the hold later, and never earlier.
func (s *State) holdUntil(at int64, by Cause, changed bool) (time.Time, bool) {
	if at > s.Hold {
		s.Hold, s.HeldBy, changed = at, by, true
	}
	return time.Unix(0, s.Hold), changed
}
