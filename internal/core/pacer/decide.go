package pacer

import "time"

const (
	// Horizon is how far ahead permits are granted, counted from the end of the write: one write serves all calls
	// within it.
	Horizon = 400 * time.Millisecond
	// Ahead is how long before the next free moment a scope may be asked again, so that the next block of permits is
	// there when its first moment comes.
	Ahead = 150 * time.Millisecond

	// skew is how far clocks of hosts may differ before it counts as a clock that jumped.
	skew = 2 * time.Second
)

// Reason says why a permit was not granted.
type Reason string

// The reasons of denials.
const (
	Granted     Reason = ""            // all that was asked for was granted
	Window      Reason = "window"      // a rule's window is full
	Held        Reason = "hold"        // the provider said when it may be asked again
	Concurrency Reason = "concurrency" // as many calls are in flight as may be
)

// Ask is what one writer asks of a scope in one write.
type Ask struct {
	Owner       string
	N           int
	Rules       []Rule
	Lead        time.Duration // no permit before now+Lead: the time that the write itself takes
	Concurrency int           // calls in flight over all owners; 0: not limited
	InUse       int           // of this owner's slots
	LeaseFor    time.Duration // how long the longest call may hold its slot
	Success     time.Time     // dispatch time of the latest success, which ends a streak of refusals
	Bulk        bool          // who asks uses the scope in bulk (bulk.go)
	Adaptive    bool          // Concurrency is where to begin (adapt.go)
	Seen        Sample        // Adaptive: since the owner's last write
}

// Permit allows one dispatch, at At or up to Valid later, as long as the scope is not held anew past that moment. It is the
// proof of its grant: for which scope, and up to which hold the scope was known (H12).
type Permit struct {
	Scope string
	At    time.Time
	Valid time.Duration
	Hold  time.Time // the scope's hold as of the grant, which is over by At; without one, the time of the grant
}

// Grant is the answer to an Ask: permits, fewer than asked for or none, and what holds up the rest.
type Grant struct {
	Permits []Permit
	Reason  Reason
	Next    time.Time // the earliest moment of a further permit
	AskAt   time.Time // when asking for it makes sense: a little before
	Hold    time.Time // the scope's hold as of this grant; zero: none
	HeldBy  Cause     // and why
	Tight   bool      // what holds up the rest is how many calls may be in flight
}

// Decide answers ask on top of s and returns the state to store. If it returns false, nothing needs to be stored.
func Decide(now time.Time, s State, ask Ask) (State, Grant, bool) {
	s = s.clone()
	t := now.UnixNano()
	own := s.settle(t, ask.Rules)
	changed := s.recover(ask.Success)
	g := Grant{}
	if s.Hold > t {
		g.Hold, g.HeldBy = time.Unix(0, s.Hold), s.HeldBy
	}
	var every int64
	if ask.Adaptive {
		a := s.start(ask.Concurrency)
		a.learn(t, s.pace(), s.leasedBy(ask.Owner), ask.Seen)
		s.Adapt, ask.Concurrency, every = a, a.allowed(), a.every()
	}
	flow := s.flow(t+int64(ask.Lead), every, own)
	limit := t + int64(ask.Lead+horizon(ask.Bulk))
	n := ask.N
	if ask.Concurrency > 0 && flow.next <= limit {
		free, leased := s.takeSlots(t, ask)
		n, changed = min(n, free), changed || leased
	}
	valid := validity(ask.Rules)
	if room := every - s.pace(); ask.Adaptive && room > 0 { // what is further apart may be further off
		valid += time.Duration(room / 4)
	}
	for len(g.Permits) < n && flow.next <= limit {
		g.Permits = append(g.Permits, Permit{At: time.Unix(0, flow.next), Valid: valid, Hold: latest(now, moment(s.Hold))})
		flow.take()
	}
	if len(g.Permits) < n {
		s.returnSlots(ask, len(g.Permits))
	}
	g.Next = time.Unix(0, flow.next)
	g.AskAt = g.Next
	if ask.Bulk && flow.next > limit {
		g.AskAt = time.Unix(0, flow.whole())
	}
	g.AskAt = latest(now, g.AskAt.Add(-ahead(ask.Bulk)-ask.Lead))
	switch {
	case len(g.Permits) == ask.N:
	case len(g.Permits) == n:
		g.Reason = Concurrency
		g.Next = latest(g.Next, now.Add(concurrencyRetry(ask.Owner, t)))
		g.AskAt = g.Next
	case s.Hold >= flow.next:
		g.Reason = Held
	default:
		g.Reason = Window
	}
	g.Tight = g.Reason == Concurrency || ask.Adaptive && s.Adapt.Top > 0 && flow.next == s.Last+every
	s.Log = s.Log.compact(maxRuns)
	return s, g, changed || len(g.Permits) > 0
}

// Forecast is the earliest moment at which the k-th further permit (1 is the next) could be granted, if nobody else
// asks and nobody refuses. It is used to give waiting rows deadlines that are staggered as the scope will serve them.
func Forecast(now time.Time, s State, rules []Rule, k int) time.Time {
	s = s.clone()
	own := s.settle(now.UnixNano(), rules)
	flow := s.flow(now.UnixNano(), 0, own)
	for range min(k, maxForecast) - 1 {
		flow.take()
	}
	return time.Unix(0, flow.next)
}

// maxForecast bounds the work of a forecast; what lies beyond is as far away as the last one computed.
const maxForecast = 1_000_000

// settle brings the state to the present: a clock that jumped, rules that nobody uses, what no window remembers. It
// returns which of the state's rules are the asker's.
func (s *State) settle(now int64, rules []Rule) (own []int) {
	s.rebase(now)
	for _, r := range rules {
		own = append(own, s.adopt(now, r.normal()))
	}
	kept := s.Rules[:0]
	remap := make([]int, len(s.Rules))
	var longest int64
	for i, r := range s.Rules {
		if now-r.Used > r.rule().window() {
			continue
		}
		remap[i] = len(kept)
		kept = append(kept, r)
		if r.Burst > 1 {
			longest = max(longest, r.rule().window())
		}
	}
	s.Rules = kept
	for i := range own {
		own[i] = remap[own[i]]
	}
	s.Log = s.Log.trim(now - longest)
	for owner, l := range s.Leases {
		if l.Until <= now {
			delete(s.Leases, owner)
		}
	}
	return own
}

// rebase moves the past back into the past if it lies in the future: some host's clock was ahead, or ours was set
// back. All grants then count as given just now, which delays but never lets through too much.
func (s *State) rebase(now int64) {
	ahead := s.Last - now
	if ahead <= int64(Horizon+skew) {
		return
	}
	s.Last = now
	s.StreakAt = min(s.StreakAt, now)
	if s.Adapt != nil {
		a := *s.Adapt
		a.CutAt, a.At, a.Test = min(a.CutAt, now), min(a.At, now), min(a.Test, now+a.Wait)
		s.Adapt = &a
	}
	for i := range s.Rules {
		s.Rules[i].TAT -= ahead
		s.Rules[i].Used = min(s.Rules[i].Used, now)
	}
	for i := range s.Log {
		s.Log[i].start -= ahead
	}
	for owner, l := range s.Leases {
		l.Until = min(l.Until, now+int64(LeaseFor))
		l.Asked = min(l.Asked, now)
		s.Leases[owner] = l
	}
}

// adopt finds the rule in the state or adds it.
func (s *State) adopt(now int64, r Rule) int {
	for i, have := range s.Rules {
		if have.rule() == r {
			s.Rules[i].Used = max(have.Used, now)
			return i
		}
	}
	s.Rules = append(s.Rules, ruleState{Rate: r.Rate, Per: int64(r.Per), Burst: r.Burst, TAT: s.Last, Used: now})
	return len(s.Rules) - 1
}

// recover ends a streak of refusals by a success that was dispatched after it last grew.
func (s *State) recover(success time.Time) bool {
	if s.Streak == 0 || success.IsZero() || success.UnixNano() <= s.StreakAt {
		return false
	}
	s.Streak = 0
	return true
}

func validity(rules []Rule) time.Duration {
	valid := maxLong / 2
	for _, r := range rules {
		valid = min(valid, r.normal().validity())
	}
	return valid
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
