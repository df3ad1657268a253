package pacer

import (
	"context"
	"maps"
	"slices"
	"time"
)

// lateWait is how long a burst's lateness is gathered before it is shared: its calls are late one after the other.
const lateWait = 25 * time.Millisecond

// Late takes note that a call left so long after the moment of its permit: it had to connect first, or the processor was
// taken away. Those that follow in its windows are ready to go, and must come later too, whoever asks for them.
func (p *Pacer) Late(permit Permit, by time.Duration) {
	if by > permit.Valid {
		p.scope(permit.Scope).note(permit.At, by)
	}
}

// Stalled takes note that this process, and with it perhaps the whole machine, stood still for d while calls were on
// their way. They may reach the provider later than they were granted, by as much, and those that follow them in their
// window must then come later too.
func (p *Pacer) Stalled(d time.Duration) {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.scopes))
	p.mu.Unlock()
	for _, s := range all {
		s.note(time.Now().Add(-d), d)
	}
}

// note books the lateness of a call with a permit of that moment. All that was granted before it is noticed is late
// together, so what counts is the most that one of these calls is late; what is granted after that comes later already.
func (s *scope) note(at time.Time, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.lateUntil) {
		s.lateBy, s.lateUntil = 0, time.Now().Add(horizon(s.bulk)+s.lead)
		if s.bulk { // the next burst may be anybody's; otherwise this owner asks again soon
			time.AfterFunc(lateWait, func() { _ = s.shrink(context.Background()) }) // if it cannot be written, the next write carries it
		}
	}
	if by > s.lateBy {
		s.late += by - s.lateBy
		s.lateBy = by
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
