package providersim

import (
	"net/http"
	"strconv"
	"time"
)

// window enforces one Limit: it remembers when the last requests were accepted.
type window struct {
	Limit
	accepted []time.Time
}

// free returns when the next request may be accepted; a time that is not after now means at once. Two requests that
// are exactly Per apart are not in one window.
func (w *window) free(now time.Time) time.Time {
	per := time.Duration(w.Per)
	for len(w.accepted) > 0 && now.Sub(w.accepted[0]) >= per {
		w.accepted = w.accepted[1:]
	}
	if len(w.accepted) < w.Rate {
		return now
	}
	return w.accepted[len(w.accepted)-w.Rate].Add(per)
}

func (w *window) accept(now time.Time) { w.accepted = append(w.accepted, now) }

// hold is an announced deadline that a client has been told and must keep.
type hold struct {
	announced time.Time // the refusal that opened it
	until     time.Time
}

// early reports whether a request that arrives now disregards the hold. What arrives within the grace was under way
// when the hold was announced, and belongs to its first refusal.
func (h *hold) early(now time.Time, grace time.Duration) bool {
	return now.Before(h.until) && now.Sub(h.announced) > grace
}

// announce opens a hold, or moves the deadline of the open one later. It reports whether it opened one.
func (h *hold) announce(now, until time.Time) (opened bool) {
	if opened = !now.Before(h.until); opened {
		h.announced = now
	}
	if until.After(h.until) {
		h.until = until
	}
	return opened
}

// state writes the deadline into the headers, and returns it as the client will understand it: rounded up to whole
// seconds, because none of the forms carries more.
func (a Announce) state(h http.Header, now, deadline time.Time) time.Time {
	whole := deadline.Truncate(time.Second)
	if whole.Before(deadline) {
		whole = whole.Add(time.Second)
	}
	switch a {
	case Date:
		h.Set("Retry-After", whole.UTC().Format(http.TimeFormat))
		return whole
	case Reset:
		h.Set("X-Ratelimit-Reset", strconv.FormatInt(whole.Unix(), 10))
		return whole
	}
	seconds := max(1, int((deadline.Sub(now)+time.Second-1)/time.Second))
	h.Set("Retry-After", strconv.Itoa(seconds))
	return now.Add(time.Duration(seconds) * time.Second)
}

// busiest is the largest number of times that lie in one window of length per. The times are in order.
func busiest(times []time.Time, per time.Duration) int {
	most, from := 0, 0
	for i, t := range times {
		for t.Sub(times[from]) >= per {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
