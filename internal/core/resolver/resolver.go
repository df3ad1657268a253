// Package resolver is how a cell is computed in Go where the map's own columns do not suffice. A resolver is a function
// that makes calls, takes steps, sleeps, waits for answers and does such things side by side; each of these is recorded at
// its position, so that the function can be run again from its beginning whenever its row comes back, after a hold, a park
// or a crash, and finds what it had. The package owns positions and replay; what the operations do, and how they are made
// durable, is its host's (package run; for authors' tests, package resolvertest).
package resolver

import (
	"context"
	"errors"
	"time"

	"sluice/internal/core/call"
)

// Func computes a cell. What it does besides must go through the Cell: it may be run again at any time, from the beginning,
// and must then do the same operations in the same order. What may turn out differently (the time, chance, a file, a
// request of its own) belongs into a Step. Its result must have a JSON form. An *Error that it returns fails the cell with
// the error's code; any other error with the code RESOLVER.
type Func func(c Cell, with map[string]any) (any, error)

// Resolver is a Func and the tools that it may call.
type Resolver struct {
	Tools []string
	Run   Func
}

// Set is the resolvers of a program, by the names that maps know them under.
type Set map[string]Resolver

// Tools are the names of the resolvers, with the tools that each may call.
func (s Set) Tools() map[string][]string {
	tools := make(map[string][]string, len(s))
	for name, r := range s {
		tools[name] = r.Tools
	}
	return tools
}

// Cell is the cell that is computed. Values that operations return have the types of JSON: nil, bool, int64, float64,
// string, []any and map[string]any; Into turns them into others.
//
// An operation that cannot end now (a provider says "wait", a sleep is not over, an answer has not come) returns an error
// for which Waits is true. Return it: the row waits, and the resolver is run again when it is time. Nothing else that the
// resolver does with it makes a difference: the row waits whatever is returned instead, and every later operation of the
// same sequence returns the same error and does nothing (R3).
type Cell interface {
	// Context ends when the run is stopped at once.
	Context() context.Context
	// Row is the input row, Cells are the cells of earlier columns, Index is the row's position in the source.
	Row() map[string]any
	Cells() map[string]any
	Index() int64
	// Call calls a tool, which the resolver must have declared. A result that is missing is nil. The error of a call that
	// has failed for good is an *Error.
	Call(tool string, with map[string]any) (any, error)
	// Step runs the body, once its result is recorded never again. A process that dies within it runs it again: what it
	// does outside must bear that. The operations of a body are recorded themselves. The body's error is recorded too,
	// and returned as an *Error.
	Step(name string, body func() (any, error)) (any, error)
	// Sleep lets time pass. Its end is fixed when it begins.
	Sleep(d time.Duration) error
	// Event waits for an answer from outside. Where none came in time the error is an *Error with the code EVENT_EXPIRED.
	Event(e Event) (any, error)
	// Parallel runs the branches side by side and returns when all have ended or wait; the error is the first one by the
	// order of the branches. A branch must use its own Cell and no other.
	Parallel(branches ...func(c Cell) error) error
}

// Event is a question to somebody outside.
type Event struct {
	Key     string        // under which it is answered
	Expires time.Duration // how long the answer is waited for; 0: the default of maps
	Open    bool          // after that it is waited for still, without a limit
	// Notify tells somebody, once; nil: nobody. A notification that fails for good ends the wait with its error.
	Notify *Notify
}

// Notify is the call that tells somebody that an answer is waited for.
type Notify struct {
	Tool string
	With func(Asked) map[string]any
}

// Asked is what a notification can tell.
type Asked struct {
	Key     string
	URL     string    // where a person can answer; empty: nowhere
	Expires time.Time // zero: an answer is never too late
}

// Error is a failure as it is recorded and shown.
type Error = call.Error

// Codes of failures that resolvers can have besides those of calls.
const (
	CodeResolver = "RESOLVER"          // the resolver returned an error
	CodeStep     = "STEP"              // a step's body did
	CodePanic    = "PANIC"             // the resolver panicked
	CodeOrder    = "NON_DETERMINISTIC" // run again, it did something else
	CodeExpired  = "EVENT_EXPIRED"     // nobody answered in time
	CodeLimit    = "TOO_MANY_STEPS"    // more operations than can be numbered
)

// Suspension is why a row waits. What is behind it is the host's.
type Suspension struct{ Reason any }

// Error implements error.
func (*Suspension) Error() string { return "the row waits; the resolver is run again when it is time" }

// Waits reports whether the error says that the row waits.
func Waits(err error) bool {
	var s *Suspension
	return errors.As(err, &s)
}
