package resolver

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"sluice/internal/core/value"
)

// Outcome is what running a resolver has come to. Of Err, Waits and Fail the first that is set counts (R4, R3).
type Outcome struct {
	Value json.RawMessage
	Fail  *Error
	Waits []*Suspension // the row waits for all of these; it goes on with whichever ends first
	Err   error         // the slice must end
	Stack string        // of a panic
}

// execution is one run of a resolver.
type execution struct {
	host Host

	mu      sync.Mutex
	seen    map[int]bool // positions that were come to
	skipped []skip       // positions that recorded steps have taken
	waits   []*Suspension
	err     error
	wrong   *Error // the resolver does what it must not: another thing than is recorded, or too much
	panic   *Error
	stack   string
}

// skip is a range of operations of a sequence, from inclusive, to exclusive.
type skip struct {
	in       sequence
	from, to int
}

// Execute runs a resolver on what its host has recorded, and records what is new.
func Execute(h Host, f Func, with map[string]any) Outcome {
	x := &execution{host: h, seen: map[int]bool{}}
	c := &cell{x: x}
	v, err := x.guard(func() (any, error) { return f(c, with) })
	switch {
	case x.err != nil:
		return Outcome{Err: x.err}
	case x.wrong != nil:
		return Outcome{Fail: x.wrong}
	case x.panic != nil && len(x.waits) == 0:
		return Outcome{Fail: x.panic, Stack: x.stack}
	case len(x.waits) > 0:
		return Outcome{Waits: x.waits}
	}
	if left := x.forgotten(); left != nil {
		return Outcome{Fail: left}
	}
	if err != nil {
		return Outcome{Fail: asError(CodeResolver, err)}
	}
	raw, err := value.Encode(v)
	if err != nil {
		return Outcome{Fail: &Error{Code: CodeResolver, Message: "its result has no JSON form: " + err.Error()}}
	}
	return Outcome{Value: raw}
}

// guard runs authored code. A panic is a failure of the row, and not of the program.
func (x *execution) guard(f func() (any, error)) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.panic == nil {
				x.panic, x.stack = &Error{Code: CodePanic, Message: fmt.Sprint(p)}, string(debug.Stack())
			}
			v, err = nil, x.panic
		}
	}()
	return f()
}

// stopped notes why an operation has not ended, and returns the error for the author.
func (x *execution) stopped(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var s *Suspension
	switch {
	case errors.As(err, &s):
		x.waits = append(x.waits, s)
	case x.err == nil:
		x.err = err
	}
	return err
}

// fail notes what the resolver must not do. Its cell fails with the first of it, whatever it returns.
func (x *execution) fail(code, format string, args ...any) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wrong == nil {
		x.wrong = &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	return x.wrong
}

// forgotten is the failure of a resolver that has ended without an operation that is recorded.
func (x *execution) forgotten() *Error {
	for _, position := range x.host.Positions() {
		if x.seen[position] || x.isSkipped(position) {
			continue
		}
		what := "an operation"
		if rec, ok, _ := x.host.Known(position); ok {
			what = rec.Op
		}
		return &Error{Code: CodeOrder, Message: "run again, the resolver ended without " + what + ", which it did before"}
	}
	return nil
}

func (x *execution) isSkipped(position int) bool {
	for _, level := range levels(position) {
		for _, s := range x.skipped {
			if s.in == level.in && s.from <= level.operation && level.operation < s.to {
				return true
			}
		}
	}
	return false
}

// asError is an author's error in the form that is recorded.
func asError(code string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Code: code, Message: err.Error()}
}
