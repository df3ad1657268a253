// Package resolver is what authors of resolvers write against: Go functions that fill a cell, for what a map cannot say
// by itself. A resolver makes calls, keeps results of its own code, sleeps, and waits for events; all of it is durable.
// This package owns the words; how they are kept is the engine's business (package run).
//
// A row may wait for hours, in another process than the one that began it. It is not kept in memory meanwhile: when it
// goes on, its resolver runs again from the top, and each Call, Step, Sleep and Event that has come to its end before
// returns at once with what it came to. They are told apart by their order. So a resolver must make them in the same
// order each time: what it decides by may come from its input and from what they return, never from clocks, random
// numbers, maps in iteration order or the network; such things belong into a Step. A resolver that does not keep to this
// fails its row with NON_DETERMINISTIC.
package resolver

import (
	"context"
	"errors"
	"time"
)

// Func fills a cell: it returns the cell's value (nil, bool, numbers, strings, []any and map[string]any), or an error,
// which fails the cell. A *CallError keeps its code.
type Func func(c Cell) (any, error)

// Registry are resolvers by the names that maps use.
type Registry map[string]Func

// Names are the names of the resolvers that there are.
func (r Registry) Names() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	return names
}

// Cell is the cell that is being filled. Its methods are for the goroutine that the resolver was called on; what may
// happen side by side goes through Parallel. The maps are shared: they are to be read only.
type Cell interface {
	// Context ends when the slice that works on the row ends.
	Context() context.Context
	Row() map[string]any   // the input
	Cells() map[string]any // earlier columns
	Vars() map[string]any
	With() map[string]any // the column's `with`
	Index() int64         // position of the row in the source, from 0

	// Call asks a tool of the catalogue and returns its result; nil where the provider has no such thing. The error is a
	// *CallError for a call that has failed for good, and ErrWaits where the row has to wait.
	Call(tool string, with map[string]any) (any, error)
	// Step runs body once and keeps what it returns: later passes get it without running body. The body may make calls. An
	// error is not kept: it is the resolver's to return or to mend.
	Step(name string, body func(c Cell) (any, error)) (any, error)
	// Sleep lets at least d pass.
	Sleep(d time.Duration) error
	// Event waits for an answer from outside and returns it. The error is ErrWaits as long as there is none, and a *CallError
	// with the code EVENT_EXPIRED when it has not come in time.
	Event(e Event) (any, error)
	// Parallel runs branches side by side, each with a cell of its own, and returns the first error in their order. A branch
	// may not sleep or wait for events.
	Parallel(branches ...func(c Cell) error) error
}

// Event is an answer to wait for.
type Event struct {
	Key     string        // under which it is answered
	Expires time.Duration // from when the event is made
	// Notify tells somebody, once the answer can be given; nil: nobody. Its calls are made once. Link is where a person can
	// answer; empty where there is no such place. An error ends the wait and is the event's.
	Notify func(c Cell, link string) error
}

// ErrWaits is what the methods of a Cell return where the row has to wait: a provider said so, a sleep is not over, no
// answer has come. The resolver returns it, or any other error; the row waits whatever it returns, and each further call of
// the same pass returns it at once. When the time has come the resolver runs again.
var ErrWaits = errors.New("the row waits; its resolver will run again")

// CallError is a call, an event or a resolver that has failed for good.
type CallError struct {
	Code    string // as in docs/errors.md
	Message string
	Status  int // of the provider's answer; 0: there was none
}

func (e *CallError) Error() string { return e.Code + ": " + e.Message }
