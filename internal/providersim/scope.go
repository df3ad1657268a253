package providersim

import (
	"net/http"
	"sync"
	"time"
)

// scope is one provider at work: what it remembers of its clients.
type scope struct {
	cfg   Provider
	grace time.Duration

	mu        sync.Mutex
	windows   []*window
	hold      hold
	outage    Outage // the one under way, or the last
	outageEnd time.Time
	accepted  int
	inFlight  int
	arrivals  []time.Time
	attempts  map[string]int         // by request, accepted ones only
	completed map[string][]time.Time // by request
	fences    map[string]bool        // Idempotency-Keys that were answered
	counts    ProviderReport
}

func newScope(p Provider, grace time.Duration) *scope {
	sc := &scope{cfg: p, grace: grace}
	sc.reset()
	return sc
}

func (sc *scope) reset() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.windows = nil
	for _, l := range sc.cfg.Limits {
		sc.windows = append(sc.windows, &window{Limit: l})
	}
	sc.hold, sc.outage, sc.outageEnd, sc.accepted, sc.arrivals = hold{}, Outage{}, time.Time{}, 0, nil
	sc.attempts, sc.completed, sc.fences = map[string]int{}, map[string][]time.Time{}, map[string]bool{}
	sc.counts = ProviderReport{Answered: map[int]int{}, Refused429: map[string]int{}}
}

func (sc *scope) startOutage(o Outage) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.outage, sc.outageEnd = o, time.Now().Add(time.Duration(o.For))
}

// verdict is what becomes of a request that has arrived.
type verdict struct {
	refusal string // reason of a 429, or empty: accepted
	early   bool
	attempt int // how often the same request was accepted before
}

// arrive judges a request at the door. An accepted one must leave by depart.
func (sc *scope) arrive(id string, h http.Header) verdict {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	now := time.Now()
	sc.arrivals = append(sc.arrivals, now)
	v := verdict{early: sc.hold.early(now, sc.grace)}
	if v.early {
		sc.counts.TooEarly++
	}
	if v.refusal = sc.refuse(now, h); v.refusal != "" {
		sc.counts.Refused429[v.refusal]++
		return v
	}
	for _, w := range sc.windows {
		w.accept(now)
	}
	v.attempt = sc.attempts[id]
	sc.attempts[id]++
	sc.inFlight++
	sc.counts.MaxInFlight = max(sc.counts.MaxInFlight, sc.inFlight)
	sc.accepted++
	for _, o := range sc.cfg.Outages {
		if o.After == sc.accepted {
			sc.outage, sc.outageEnd = o, now.Add(time.Duration(o.For))
		}
	}
	return v
}

// refuse returns why the request cannot be accepted now, and announces when it could be.
func (sc *scope) refuse(now time.Time, h http.Header) string {
	if now.Before(sc.outageEnd) {
		sc.announce(sc.outage.Announce, h, now, sc.outageEnd)
		return "outage"
	}
	deadline, announce := now, Announce("")
	for _, w := range sc.windows {
		if free := w.free(now); free.After(deadline) {
			deadline, announce = free, w.Announce
		}
	}
	if deadline.After(now) {
		sc.counts.Refused++
		sc.announce(announce, h, now, deadline)
		return "limit"
	}
	if sc.cfg.Concurrency > 0 && sc.inFlight >= sc.cfg.Concurrency {
		sc.announce(Seconds, h, now, now.Add(time.Second))
		return "concurrency"
	}
	return ""
}

func (sc *scope) announce(a Announce, h http.Header, now, deadline time.Time) {
	if sc.hold.announce(now, a.state(h, now, deadline)) {
		sc.counts.Holds++
	}
}

// end is how an accepted request ended.
type end struct {
	status  int
	body    any
	fence   string
	cut     bool // only half of it is written
	bare    bool // a 429 that announces nothing
	aborted bool // the client left while it was waiting
}

// depart books the end of an accepted request.
func (sc *scope) depart(id string, e end) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.inFlight--
	if e.aborted {
		sc.counts.Aborted++
		return
	}
	sc.counts.Answered[e.status]++
	switch {
	case e.bare:
		sc.counts.Refused429["bare"]++
	case e.cut:
		sc.counts.Cut++
	case e.status/100 != 2 && e.status != http.StatusNotFound && e.status != http.StatusUnprocessableEntity:
		// no answer to the question
	case e.fence != "" && sc.fences[e.fence]:
		sc.counts.Replayed++
	default:
		sc.counts.Completed++
		sc.completed[id] = append(sc.completed[id], time.Now())
		if e.fence != "" {
			sc.fences[e.fence] = true
		}
	}
}

// turnAway books a request that was answered without being accepted.
func (sc *scope) turnAway(status int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.counts.Answered[status]++
}
