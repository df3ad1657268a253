package start

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"sluice/internal/active"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/strict"
)

// Executions is what works on runs: state machines, or the driver of this machine.
type Executions interface {
	// Start starts the run's execution; one that was started before is left alone, whatever has become of it. The execution's
	// number is that of the run's record (sheet.Run, Execution).
	Start(ctx context.Context, run string, execution int) error
}

// Starter begins runs.
type Starter struct {
	Store      *store.Store
	Executions Executions
	// Accept refuses what cannot be done here, as a *strict.Error, before anything is written: ForCloud, or a look at the secrets.
	Accept func(context.Context, *run.Prepared) error
	// Resolvers are those that maps may name.
	Resolvers resolver.Set
}

// ConflictError: the id belongs to another run.
type ConflictError struct{ Run string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("run %q exists, with another map, tools, variables, limit or input; choose another id", e.Run)
}

// Start begins the run, or finds that it has begun (X1). Errors: *strict.Error, *ConflictError; with any other it is
// open whether the run began, and starting again under the same id is right.
//
// The order: the list of active runs, the record, the input, the execution. Whatever dies between two of them, the same
// start repeated completes it; and if nobody repeats it, the reaper finds it in the list.
func (s *Starter) Start(ctx context.Context, req Request) (*sheet.Run, error) {
	if req.Run == "" {
		req.Run = strings.ToLower(ulid.Make().String())
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	want, rows, err := req.request()
	if err != nil {
		return nil, err
	}
	want.Resolvers = s.Resolvers
	prepared, err := run.Prepare(want)
	if err != nil {
		return nil, strict.Wrap(err)
	}
	if err := s.Accept(ctx, prepared); err != nil {
		return nil, err
	}
	if err := active.Add(ctx, s.Store.Table, req.Run); err != nil {
		return nil, err
	}
	rec, err := prepared.Register(ctx, s.Store)
	if errors.Is(err, run.ErrOtherRun) {
		return nil, &ConflictError{Run: req.Run}
	}
	if err != nil {
		return nil, err
	}
	if rec.Status != sheet.Staging { // it has gone further than a start goes
		return rec, nil
	}
	if rows != nil {
		if err := s.Store.Blobs.Put(ctx, want.Source.Object, bytes.NewReader(rows)); err != nil {
			return nil, fmt.Errorf("rows of run %s: %w", req.Run, err)
		}
	}
	return rec, s.Executions.Start(ctx, rec.ID, rec.Execution())
}
