// Package call owns what a logical call is: its identity, the port through which attempts leave the engine, sharing
// of identical calls, and the retry cursor. It knows nothing of HTTP, rates or storage formats.
package call

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Attempt is one physical dispatch asked of the gateway.
type Attempt struct {
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`            // canonical JSON of the call's `with`
	Inputs    []json.RawMessage `json:"inputs,omitempty"` // instead of Input: of many calls that are one request, of a tool with `batch`
	RequestID string            `json:"requestId"`        // the same over ambiguous repeats (R8)
	Fence     string            `json:"fence,omitempty"`  // the call's stable key, for tools that declare a fence
	Number    int               `json:"number"`           // 0-based attempt number of the logical call
	Retry     bool              `json:"retry,omitempty"`  // asks for its permit ahead of first attempts (Q6)
}

// Outcome is what an attempt came to.
type Outcome string

// The outcomes. Held, Retry and Refused leave the call open; the others end it.
const (
	Result  Outcome = "result"  // Value holds the tool's result
	Missing Outcome = "missing" // the provider has no such thing: null, not an error
	Held    Outcome = "held"    // the provider (or its pacing) says: not before Until
	Refused Outcome = "refused" // provably not dispatched, no attempt is charged; again at Until
	Retry   Outcome = "retry"   // a failure that may pass: again after a backoff, while attempts last
	Failed  Outcome = "failed"  // final
	Unknown Outcome = "unknown" // may have been executed, must not be repeated
)

// Answer is what became of one attempt.
type Answer struct {
	Outcome    Outcome         `json:"outcome"`
	Value      json.RawMessage `json:"value,omitempty"`
	Until      time.Time       `json:"until,omitzero"`     // Held, Refused: the earliest next dispatch
	HoldUntil  time.Time       `json:"holdUntil,omitzero"` // Refused: the provider has asked for a wait until then; zero: it has not
	NextFree   time.Time       `json:"nextFree,omitzero"`  // when the scope can be asked again; zero: at once
	Why        Why             `json:"why,omitzero"`       // Held, Refused, and with NextFree: what is waited for
	Scope      string          `json:"scope,omitempty"`    // the rate scope the answer speaks of
	Dispatched bool            `json:"dispatched"`         // the request may have reached the provider (Q7)
	Charged    bool            `json:"charged,omitempty"`  // Retry: counts as an attempt. Whatever was dispatched does
	Status     int             `json:"status,omitempty"`
	CostMicros int64           `json:"costMicros,omitempty"`
	Error      *Error          `json:"error,omitempty"`   // Retry, Failed, Unknown; Held for its reason
	Members    []Answer        `json:"members,omitempty"` // Result of a batch: of each call, in order. Otherwise the answer is that of all
	Split      bool            `json:"split,omitempty"`   // a batch was certainly not executed, or does no harm again, and may be made in parts
}

// Refusal reports whether the provider has certainly not executed the request that it answered: it asked to wait, said
// that it was too early (RFC 8470), or did not take the credential. What follows is another request (R8).
func (a Answer) Refusal() bool {
	switch {
	case !a.Dispatched:
		return false
	case a.Outcome == Retry:
		return a.Status == http.StatusTooEarly || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
	}
	return a.Outcome == Held || a.Outcome == Refused
}

// Error is a call's failure in the form in which it is stored and shown.
type Error struct {
	Code       string    `json:"code"` // e.g. HTTP_503, TIMEOUT, OUTCOME_UNKNOWN; docs/errors.md lists them
	Message    string    `json:"message"`
	Status     int       `json:"status,omitempty"`     // of the provider's answer; 0: there was none
	Attempt    int       `json:"attempt,omitempty"`    // which one it was, from 1; 0: no attempt was made
	Dispatched bool      `json:"dispatched,omitempty"` // the request may have reached the provider
	Dispatch   *Dispatch `json:"dispatch,omitempty"`   // OUTCOME_UNKNOWN: which request it is that nobody knows of
}

// Dispatch says which request an error speaks of, for a person who looks for it at the provider.
type Dispatch struct {
	Tool    string    `json:"tool"`
	Request string    `json:"request"`     // request id (R8)
	Attempt int       `json:"attempt"`     // 0-based
	At      time.Time `json:"at,omitzero"` // when it was about to leave; zero: not known
}

// Of returns the error with the request that it speaks of.
func (e Error) Of(d Dispatch) *Error {
	e.Dispatch = &d
	e.Message += fmt.Sprintf(" (attempt %d of %s", d.Attempt+1, d.Tool)
	if !d.At.IsZero() {
		e.Message += " at " + d.At.UTC().Format(time.RFC3339)
	}
	e.Message += ", request " + d.Request + ")"
	return &e
}

// OutcomeUnknown is the code of a call that may have been executed and must not be repeated (T2).
const OutcomeUnknown = "OUTCOME_UNKNOWN"

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Gateway executes attempts. Execute calls deliver exactly once for every attempt, as soon as its answer is known,
// from any goroutine, and returns after the last one. A non-nil error means that attempts not delivered yet never
// will be and were provably not dispatched. Every implementation passes the contract test in gatewaytest.
type Gateway interface {
	Execute(ctx context.Context, batch []Attempt, deliver func(i int, a Answer)) error
}
