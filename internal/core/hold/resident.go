package hold

import "time"

// ResidentBudget is how long a logical call may wait inside an invocation, in all, counted from its first wait.
const ResidentBudget = 5 * time.Second

// Floors of waits: a zero or expired hold still spends something, so that repeating it ends.
const (
	minResident = time.Millisecond
	minPark     = time.Second
)

// Budget is the limit of resident waiting of one logical call. The zero Budget allows none.
type Budget struct{ Limit time.Duration }

// DefaultBudget is the budget of ResidentBudget.
func DefaultBudget() Budget { return Budget{Limit: ResidentBudget} }

// Resident reports whether a hold may be waited out inside the invocation: max(1 ms, wait) <= limit - elapsed.
func (b Budget) Resident(wait, elapsed time.Duration) bool {
	return max(minResident, wait) <= b.Limit-max(elapsed, 0)
}

// Residency remembers one logical call's resident waiting. The zero Residency has not waited yet. It is a value that
// its call owns; it is not safe for concurrent use.
type Residency struct {
	// Spent is sticky: once a hold did not fit, none does until the call ends, also after a park.
	Spent bool
	first time.Time // of the first resident wait, with its monotonic reading
	holds int
}

// Elapsed is the monotonic time since the first resident wait: waits, exchanges and permits all count. A hold that
// returns faster than the clock ticks counts as the shortest wait, so that no number of empty holds is free.
func (r *Residency) Elapsed(now time.Time) time.Duration {
	if r.first.IsZero() {
		return 0
	}
	return max(now.Sub(r.first), time.Duration(r.holds)*minResident)
}

// Wait decides about a hold that lasts until the given moment. If it is resident, Wait returns how long to wait (at
// least 1 ms) and true, and the budget's clock starts if it had not. If not, the budget is spent.
func (r *Residency) Wait(now, until time.Time, b Budget) (time.Duration, bool) {
	wait := max(minResident, until.Sub(now))
	if r.Spent || !b.Resident(wait, r.Elapsed(now)) {
		r.Spent = true
		return 0, false
	}
	if r.first.IsZero() {
		r.first = now
	}
	r.holds++
	return wait, true
}

// WakeAt is when a parked shard continues: at the earliest deadline, but a second from now at the least, so that a
// deadline in the past never makes a busy loop of parks.
func WakeAt(now, earliest time.Time) time.Time {
	if floor := now.Add(minPark); earliest.Before(floor) {
		return floor
	}
	return earliest
}
