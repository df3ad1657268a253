package pacer

import "time"

// Rule is a provider's limit: at most Rate dispatches in any window of length Per, at most Burst of them back to
// back. Burst 0 is the default: 1 (evenly spaced) for windows up to shortWindow, Rate for longer ones, which are
// used as a burst, after which the scope is closed until the window frees.
type Rule struct {
	Rate  int
	Per   time.Duration
	Burst int
}

// The slack by which a window is enlarged: a share of it, within bounds. The lower bound keeps permits of very short
// windows usable with the timers of an ordinary host. The upper one is what a long window should lose at most, and
// grows with it: a permit of a daily limit that goes void because the process stood still is gone for a day.
const (
	slackShare = 0.03
	minSlack   = 10 * time.Millisecond
	maxSlack   = 250 * time.Millisecond
	longShare  = 0.001 // of the window, where that is more than maxSlack
	maxLong    = 5 * time.Second

	shortWindow = 10 * time.Second
)

func (r Rule) normal() Rule {
	r.Rate, r.Per = max(r.Rate, 1), max(r.Per, time.Millisecond)
	if r.Burst <= 0 {
		r.Burst = 1
		if r.Per > shortWindow {
			r.Burst = r.Rate
		}
	}
	r.Burst = min(r.Burst, r.Rate)
	return r
}

func (r Rule) slack() time.Duration {
	limit := max(maxSlack, min(share(longShare, r.Per), maxLong))
	return min(max(share(slackShare, r.Per), minSlack), limit)
}

func share(part float64, d time.Duration) time.Duration { return time.Duration(part * float64(d)) }

// window is the enlarged window in nanoseconds.
func (r Rule) window() int64 { return int64(r.Per + r.slack()) }

// Window is the time within which a rule is kept: Per, and the slack.
func (r Rule) Window() time.Duration { return time.Duration(r.normal().window()) }

// interval is the distance of evenly spaced dispatches, rounded up so that Rate of them never fit a window.
func (r Rule) interval() int64 { return (r.window() + int64(r.Rate) - 1) / int64(r.Rate) }

// validity is how long after its moment a permit may be used.
func (r Rule) validity() time.Duration { return r.slack() / 2 }
