package run

import (
	"sync/atomic"
	"time"

	"sluice/internal/core/call"
)

// A lane that its provider has closed. Rows that wait in it behind a hold wait as much as those that met it: they keep
// a slice that is otherwise idle alive no longer than those may (Q3). Waiting for one's turn is another matter (H17).

// standing is how the calls in a lane stand.
type standing = int32

const (
	vacant  standing = iota // no call waits
	moving                  // calls wait for their turn
	stalled                 // calls wait behind a hold
)

// retriesFirst is how long after a hold the first attempts stand back, for the calls that met it to join the queue at
// its head (Q6).
const retriesFirst = 5 * time.Millisecond

// holding follows the holds of a lane. Its fields are guarded by the lane's mutex, but for the atomic ones.
type holding struct {
	from  time.Time    // when the holds began that no answer has interrupted since; zero: there is none
	on    atomic.Bool  // from is set
	stand atomic.Int32 // standing
}

// progress reports whether the answer shows that the provider is at work again.
func (h *holding) progress(a call.Answer) bool {
	return h.on.Load() && a.Dispatched && a.Outcome != call.Held && a.Outcome != call.Retry
}

func (h *holding) learn(a call.Answer) {
	switch {
	case a.Outcome == call.Held && h.from.IsZero():
		h.from = time.Now()
		h.on.Store(true)
	case h.progress(a):
		h.from = time.Time{}
		h.on.Store(false)
	}
}

// tooLong reports whether the lane opens too late for an idle slice to wait for.
func (l *lane) tooLong(now time.Time) bool {
	if l.holding.from.IsZero() || !l.closed.After(now) {
		return false
	}
	return l.closed.Sub(l.pool.idleFrom(l.holding.from)) > l.budget
}

// stands notes how the lane stands, and tells the pool when it has come to a halt.
func (l *lane) stands(s standing) {
	if l.holding.stand.Swap(s) != s && s == stalled {
		l.pool.tell()
	}
}

// standBack is how long the first attempts at the head of the queue still leave room for retries.
func (l *lane) standBack(now time.Time) time.Duration {
	if l.holding.from.IsZero() || l.queue[0].attempt.Retry {
		return 0
	}
	return l.closed.Add(retriesFirst).Sub(now)
}

// stalled reports whether every call that waits in a lane waits behind a hold.
func (c *caller) stalled() bool {
	some := false
	for _, l := range c.lanes {
		switch l.holding.stand.Load() {
		case moving:
			return false
		case stalled:
			some = true
		}
	}
	return some
}
