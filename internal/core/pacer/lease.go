package pacer

import (
	"strconv"
	"time"

	"sluice/internal/core/hold"
)

const (
	// LeaseFor is how long a lease of concurrency lives without its owner, beyond the longest call that may run in it.
	LeaseFor = 60 * time.Second

	// A want that was not met counts for wantFor; it is written again once it is older than wantAgain.
	wantFor   = 2 * time.Second
	wantAgain = time.Second

	// Who is refused for concurrency asks again after this, plus up to as much three times over by jitter.
	minConcurrencyRetry = 50 * time.Millisecond
)

// takeSlots leases what ask wants and may have, and returns how many slots are free for new calls. Where others wait
// for slots, nobody gets or keeps more than a fair share (but what is in use stays).
func (s *State) takeSlots(now int64, ask Ask) (free int, changed bool) {
	mine := s.Leases[ask.Owner]
	others, owners, waiting := 0, 1, false
	for owner, l := range s.Leases {
		if owner == ask.Owner {
			continue
		}
		wants := l.Want > l.N && now-l.Asked <= int64(wantFor)
		others += l.N
		waiting = waiting || wants
		if l.N > 0 || wants {
			owners++
		}
	}
	want := ask.InUse + ask.N
	n := min(want, ask.Concurrency-others)
	if waiting {
		n = min(n, max(1, ask.Concurrency/owners))
	}
	n = max(n, ask.InUse)
	free = n - ask.InUse
	next := lease{N: n, Want: want, Asked: now, Until: now + int64(max(ask.LeaseFor, 0)+LeaseFor)}
	stale := now-mine.Asked > int64(wantAgain)
	if free == 0 && mine.N == n && mine.Want == want && !stale {
		return 0, false // it is known already what this owner waits for
	}
	s.setLease(ask.Owner, next)
	return free, true
}

// leasedBy is what others than the owner have leased.
func (s *State) leasedBy(others string) (n int) {
	for owner, l := range s.Leases {
		if owner != others {
			n += l.N
		}
	}
	return n
}

// returnSlots gives back what the windows left without a permit.
func (s *State) returnSlots(ask Ask, used int) {
	if l, ok := s.Leases[ask.Owner]; ok && l.N > ask.InUse+used {
		l.N = ask.InUse + used
		l.Want = l.N
		s.setLease(ask.Owner, l)
	}
}

func (s *State) setLease(owner string, l lease) {
	if s.Leases == nil {
		s.Leases = make(map[string]lease, 1)
	}
	s.Leases[owner] = l
}

// bury frees what dead owners held.
func (s *State) bury(own string, alive func(owner string) bool) {
	for owner := range s.Leases {
		if owner != own && alive != nil && !alive(owner) {
			delete(s.Leases, owner)
		}
	}
}

// concurrencyRetry is jittered by owner and moment, so that owners who wait for the same slot do not keep step.
func concurrencyRetry(owner string, now int64) time.Duration {
	part := hold.Fraction(owner + strconv.FormatInt(now, 36))
	return minConcurrencyRetry + time.Duration(part*float64(3*minConcurrencyRetry))
}
