package providersim

import (
	"cmp"
	"slices"
	"time"
)

// Report says what the simulator was asked since its start or the last reset. All times are the simulator's own.
type Report struct {
	Providers map[string]ProviderReport `json:"providers"`
}

// ProviderReport is about one provider.
type ProviderReport struct {
	Received    int            `json:"received"`    // requests, whatever became of them
	Answered    map[int]int    `json:"answered"`    // by status, cut answers included
	Refused429  map[string]int `json:"refused429"`  // by reason: limit, outage, bare, concurrency
	Refused     int            `json:"refused"`     // by a limit: the client was faster than allowed
	Cut         int            `json:"cut"`         // answers cut off in the middle
	Aborted     int            `json:"aborted"`     // the client went away before its answer
	Completed   int            `json:"completed"`   // whole answers to the question: 2xx, 404 and 422
	Distinct    int            `json:"distinct"`    // different requests among the completed
	Replayed    int            `json:"replayed"`    // repeats under an Idempotency-Key that was already answered
	Holds       int            `json:"holds"`       // deadlines announced, extensions not counted
	TooEarly    int            `json:"tooEarly"`    // arrived while a hold was on, see below
	MaxInFlight int            `json:"maxInFlight"` // most requests served at once
	Windows     []WindowReport `json:"windows"`     // one for each limit
	First       time.Time      `json:"first,omitzero"`
	Last        time.Time      `json:"last,omitzero"`
	// CompletedTwice lists requests that were completed more than once, in the order of their first completion.
	CompletedTwice []Repeat `json:"completedTwice"`
}

// A hold starts with a 429 that announces a deadline, and lasts until that deadline or the latest one that a further
// 429 announces meanwhile. Requests that arrive within the grace after its start were under way already and belong to
// its first refusal. Any later request before its end is too early.

// WindowReport compares a limit with the busiest window of its length. All requests count, also the refused ones.
type WindowReport struct {
	Rate int      `json:"rate"`
	Per  Duration `json:"per"`
	Max  int      `json:"max"`
}

// Repeat is a request that was completed more than once.
type Repeat struct {
	Request string      `json:"request"`
	At      []time.Time `json:"at"`
}

// Report returns the state of things.
func (s *Sim) Report() Report {
	out := Report{Providers: map[string]ProviderReport{}}
	for name, sc := range s.scopes {
		out.Providers[name] = sc.report()
	}
	return out
}

func (sc *scope) report() ProviderReport {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	r := sc.counts
	r.Answered, r.Refused429 = copyOf(sc.counts.Answered), copyOf(sc.counts.Refused429)
	r.Received, r.Distinct = len(sc.arrivals), len(sc.completed)
	r.Windows = []WindowReport{}
	for _, l := range sc.cfg.Limits {
		r.Windows = append(r.Windows, WindowReport{l.Rate, l.Per, busiest(sc.arrivals, time.Duration(l.Per))})
	}
	if n := len(sc.arrivals); n > 0 {
		r.First, r.Last = sc.arrivals[0], sc.arrivals[n-1]
	}
	r.CompletedTwice = []Repeat{}
	for request, at := range sc.completed {
		if len(at) > 1 {
			r.CompletedTwice = append(r.CompletedTwice, Repeat{request, slices.Clone(at)})
		}
	}
	slices.SortFunc(r.CompletedTwice, func(a, b Repeat) int {
		return cmp.Or(a.At[0].Compare(b.At[0]), cmp.Compare(a.Request, b.Request))
	})
	return r
}

// copyOf never returns nil, so that JSON shows an empty object.
func copyOf[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
