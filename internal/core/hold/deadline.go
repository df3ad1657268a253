package hold

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait is the longest wait that a provider's header is believed to mean. Anything further away is a mistake or
// a suspension of the account, and both are better met by the cooldown, which asks again, than by silence for months.
const MaxWait = 30 * 24 * time.Hour

// Values of reset headers are told apart by magnitude. Seconds to wait never reach epochSeconds (2001-09-09, 31
// years), and an epoch in seconds never reaches epochMillis (the same instant in milliseconds; year 33658 in seconds).
const (
	epochSeconds = 1e9
	epochMillis  = 1e12
)

// Deadline reads the earliest moment at which a provider wants to be asked again from the headers of its answer,
// observed at now. Headers are tried in order: Retry-After (seconds, also decimal, or an HTTP date),
// Retry-After-Ms (milliseconds), then resetHeaders (seconds to wait, epoch seconds or milliseconds, a duration such
// as 1m30s, an RFC 3339 time or an HTTP date). The first usable one counts.
//
// Points in time are read on the server's clock: where the answer has a Date, the wait is the distance from it, so
// clocks that differ by minutes do no harm. A value that is negative, not a number, or more than MaxWait away is
// not usable; a point in time that has just passed is usable and means now. The result is never before now.
func Deadline(now time.Time, h http.Header, resetHeaders []string) (time.Time, bool) {
	now = now.Round(0)
	server := serverTime(now, h)
	if at, ok := usable(now, retryAfter(now, server, h.Get("Retry-After"))); ok {
		return at, true
	}
	if at, ok := usable(now, after(now, h.Get("Retry-After-Ms"), time.Millisecond)); ok {
		return at, true
	}
	for _, name := range resetHeaders {
		if at, ok := usable(now, reset(now, server, h.Get(name))); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// grace is how far in the past a point in time may lie and still be believed: the answer may have been under way.
const grace = time.Minute

func usable(now, at time.Time) (time.Time, bool) {
	switch {
	case at.IsZero(), at.Before(now.Add(-grace)), at.After(now.Add(MaxWait)):
		return time.Time{}, false
	case at.Before(now):
		return now, true
	}
	return at, true
}

// serverTime is what the server's clock shows at now. Without a usable Date it is assumed to agree with ours.
func serverTime(now time.Time, h http.Header) time.Time {
	if date, err := http.ParseTime(strings.TrimSpace(h.Get("Date"))); err == nil {
		return date
	}
	return now
}

func retryAfter(now, server time.Time, v string) time.Time {
	if at := after(now, v, time.Second); !at.IsZero() {
		return at
	}
	return httpDate(now, server, v)
}

// after reads a number of units to wait.
func after(now time.Time, v string, unit time.Duration) time.Time {
	n, ok := number(v)
	if !ok || n < 0 || n > float64(MaxWait/unit) {
		return time.Time{}
	}
	return now.Add(time.Duration(math.Ceil(n * float64(unit))))
}

func httpDate(now, server time.Time, v string) time.Time {
	at, err := http.ParseTime(strings.TrimSpace(v))
	if err != nil {
		return time.Time{}
	}
	return onOurClock(now, server, at)
}

func reset(now, server time.Time, v string) time.Time {
	v = strings.TrimSpace(v)
	if n, ok := number(v); ok {
		switch {
		case n < epochSeconds:
			return after(now, v, time.Second)
		case n < epochMillis:
			return onOurClock(now, server, epoch(n))
		default:
			return onOurClock(now, server, epoch(n/1000))
		}
	}
	if d, err := time.ParseDuration(v); err == nil {
		if d < 0 || d > MaxWait {
			return time.Time{}
		}
		return now.Add(d)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return onOurClock(now, server, at)
	}
	return httpDate(now, server, v)
}

// onOurClock moves a point on the server's clock to ours. Years that a time.Duration cannot span are clamped by
// time.Sub and found too far away by usable.
func onOurClock(now, server, at time.Time) time.Time {
	return now.Add(at.Sub(server))
}

func epoch(seconds float64) time.Time {
	if seconds > 1e11 { // far past any calendar; keeps the conversion in range
		seconds = 1e11
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

// number reads a plain decimal number. What strconv would read beyond that (hex, infinities, underscores) is not
// something a provider means.
func number(v string) (float64, bool) {
	v = strings.TrimSpace(v)
	if v == "" || len(v) > 32 || strings.Trim(v, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil
}
