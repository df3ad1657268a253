// Package providersim simulates rate-limited providers, to try maps against and to prove how a client behaves.
//
// It owns what a provider does to its clients: limits that it enforces strictly, announced and unannounced refusals,
// outages, slow, failing and broken answers; and a report of exactly what it was asked and when. Nothing is left to
// chance: whether a request is troubled follows from a hash of what it asks and from how often it was asked before,
// so two runs with the same calls meet the same troubles. It refuses to be a mock: it knows nothing of its client.
package providersim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config describes all simulated providers.
type Config struct {
	Providers []Provider `json:"providers"`
	// Grace is how long after the refusal that opens a hold further requests still count as under way at that moment,
	// and so not as too early. Default 250 ms.
	Grace Duration `json:"grace,omitzero"`
}

// Provider is one simulated API, served under /<name>/.
type Provider struct {
	Name string `json:"name"`
	// Kind is what the API knows: company, phone, search, verify or chat; see answers.go.
	Kind string `json:"kind"`
	// Key is the credential that it asks for: as Bearer token, basic password, X-Api-Key header or api_key query
	// parameter. Empty: none.
	Key string `json:"key,omitempty"`
	// Limits are all enforced, in every window and not only in those that begin on the minute.
	Limits []Limit `json:"limits,omitempty"`
	// Concurrency is the most requests that it serves at once; more are refused with "Retry-After: 1". 0: any number.
	Concurrency int `json:"concurrency,omitempty"`
	// Outages are met on the way: see Outage.
	Outages []Outage `json:"outages,omitempty"`

	// The shares, in thousandths of all distinct requests, whose first attempt is troubled: refused with a 429 that
	// announces nothing, answered 503, or cut off in the middle of the answer.
	Bare        int `json:"bare,omitempty"`
	Unavailable int `json:"unavailable,omitempty"`
	Cut         int `json:"cut,omitempty"`
	// Slow is the share, in thousandths, that is answered only after SlowBy, on every attempt.
	Slow   int      `json:"slow,omitempty"`
	SlowBy Duration `json:"slowBy,omitzero"`
}

// Limit is at most Rate accepted requests in any window of length Per.
type Limit struct {
	Rate     int      `json:"rate"`
	Per      Duration `json:"per"`
	Announce Announce `json:"announce,omitempty"` // how a refusal tells when to come back; default seconds
}

// Outage begins by itself with the After-th accepted request, and refuses all requests For a time.
type Outage struct {
	After    int      `json:"after"`
	For      Duration `json:"for"`
	Announce Announce `json:"announce,omitempty"`
}

// Announce is the form in which a refusal states its deadline. All are rounded up to whole seconds.
type Announce string

// The forms of announcement.
const (
	Seconds Announce = "seconds" // Retry-After: 7
	Date    Announce = "date"    // Retry-After: Fri, 31 Dec 1999 23:59:59 GMT
	Reset   Announce = "reset"   // X-RateLimit-Reset: 946684799, and no Retry-After
)

// Duration is a time.Duration that is written as text in JSON: "1s", "1m".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// ParseConfig reads a configuration from JSON.
func ParseConfig(b []byte) (Config, error) {
	var c Config
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("simulator configuration: %w", err)
	}
	return c, c.check()
}

func (c Config) check() error {
	var errs []error
	seen := map[string]bool{}
	for i, p := range c.Providers {
		at := fmt.Sprintf("providers[%d] %q", i, p.Name)
		if p.Name == "" || strings.ContainsAny(p.Name, "/_?#% ") {
			errs = append(errs, fmt.Errorf("%s: the name must be one plain path segment without _", at))
		}
		if seen[p.Name] {
			errs = append(errs, fmt.Errorf("%s: the name is used twice", at))
		}
		seen[p.Name] = true
		if kinds[p.Kind] == nil {
			errs = append(errs, fmt.Errorf("%s: unknown kind %q; known are company, phone, search, verify and chat", at, p.Kind))
		}
		for _, l := range p.Limits {
			if l.Rate < 1 || l.Per <= 0 || !l.Announce.valid() {
				errs = append(errs, fmt.Errorf("%s: a limit needs rate >= 1, per > 0 and announce seconds, date or reset", at))
			}
		}
		for _, o := range p.Outages {
			if o.After < 1 || o.For <= 0 || !o.Announce.valid() {
				errs = append(errs, fmt.Errorf("%s: an outage needs after >= 1, for > 0 and announce seconds, date or reset", at))
			}
		}
		if p.Bare+p.Unavailable+p.Cut > 1000 || min(p.Bare, p.Unavailable, p.Cut, p.Slow) < 0 {
			errs = append(errs, fmt.Errorf("%s: bare, unavailable and cut are thousandths and together at most 1000", at))
		}
	}
	return errors.Join(errs...)
}

func (a Announce) valid() bool { return a == "" || a == Seconds || a == Date || a == Reset }
