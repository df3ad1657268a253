package pacer

import (
	"context"
	"time"
)

// lateWait is how long a burst's lateness is gathered before it is shared: its calls are late one after the other.
const lateWait = 25 * time.Millisecond

// Late takes note that a call left so long after the moment of its permit: it had to connect first. In bulk a whole burst
// does, on connections that the next burst finds ready; so what follows in its windows must come later too, whoever asks
// for it. Where dispatches are spaced out, the few that are late lie within the windows' slack.
func (p *Pacer) Late(permit Permit, by time.Duration) {
	if p.Bulk && by > permit.Valid {
		p.scope(permit.Scope).note(permit.At, by)
	}
}

// note books the lateness of one call, as far as it is more than what is known of its burst.
func (s *scope) note(at time.Time, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.Equal(s.burstAt) {
		s.burstAt, s.burstLate = at, 0
		time.AfterFunc(lateWait, func() { _ = s.shrink(context.Background()) }) // if it cannot be written, the next write carries it
	}
	if by > s.burstLate {
		s.late += by - s.burstLate
		s.burstLate = by
	}
}

// delay counts all that was granted as granted d nanoseconds later, under the rules whose slack does not cover that:
// those calls may have reached the provider so much later than their permits said. It reports whether anything changed.
func (s *State) delay(d int64) (changed bool) {
	logged := false
	for i := range s.Rules {
		r := s.Rules[i].rule()
		if d <= int64(r.slack())/2 {
			continue
		}
		s.Rules[i].TAT += d
		changed = true
		logged = logged || r.Burst > 1
	}
	if logged {
		for i := range s.Log {
			s.Log[i].start += d
		}
	}
	if changed {
		s.Last += d
	}
	return changed
}
