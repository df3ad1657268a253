package edge

import (
	"errors"
	"fmt"

	"sluice/internal/core/sheet"
)

// The errors that functions return. The name of the type is the name that a state machine sees: the runtime reports
// the outermost type, so these are returned as they are and never wrapped.
type (
	// RunNotFound: there is no run of that id.
	RunNotFound struct{ Run string }
	// RunFailed: trying again cannot help. The run must be ended, with this as its reason.
	RunFailed struct{ Cause error }
	// Transient: it may pass, and trying again is harmless.
	Transient struct{ Cause error }
	// BadRequest: the request is not one that the function takes.
	BadRequest struct{ Message string }
)

func (e *RunNotFound) Error() string { return fmt.Sprintf("there is no run %q", e.Run) }
func (e *RunFailed) Error() string   { return e.Cause.Error() }
func (e *Transient) Error() string   { return e.Cause.Error() }
func (e *BadRequest) Error() string  { return e.Message }

// Unwrap returns the cause.
func (e *RunFailed) Unwrap() error { return e.Cause }

// Unwrap returns the cause.
func (e *Transient) Unwrap() error { return e.Cause }

// ErrorNames are the names that may appear in a state machine's Retry and Catch.
func ErrorNames() []string { return []string{"RunNotFound", "RunFailed", "Transient", "BadRequest"} }

// Named returns err as one of the named errors: the one that it is or wraps, RunNotFound for a run that is not there,
// and Transient for everything else. What is permanent must have been said by whoever knows.
func Named(run string, err error) error {
	if err == nil {
		return nil
	}
	for _, named := range []func(error) error{as[*RunNotFound], as[*RunFailed], as[*BadRequest], as[*Transient]} {
		if found := named(err); found != nil {
			return found
		}
	}
	if errors.Is(err, sheet.ErrNoRun) {
		return &RunNotFound{Run: run}
	}
	return &Transient{Cause: err}
}

func as[E error](err error) error {
	var found E
	if errors.As(err, &found) {
		return found
	}
	return nil
}

// Name is the name by which a state machine knows the error.
func Name(err error) string {
	switch err.(type) { //nolint:errorlint // the Lambda runtime looks at the outermost type, too
	case *RunNotFound:
		return "RunNotFound"
	case *RunFailed:
		return "RunFailed"
	case *BadRequest:
		return "BadRequest"
	}
	return "Transient"
}
