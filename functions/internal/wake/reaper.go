package wake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/steer"
	"sluice/internal/active"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

const (
	// Grace is how long a start may be under way before the reaper completes it.
	Grace = 5 * time.Minute
	// MaxRestarts is how often a run whose execution died without a word is given another one. Its state is durable, so
	// it goes on where it was; but an execution that dies again and again has a reason that more of them will not mend.
	MaxRestarts = 3
)

// Reaper makes the records of runs true whose execution died: an execution ends by telling the record, unless it was
// stopped from outside, or could not reach it.
type Reaper struct {
	Store      *store.Store
	Executions machine.Executions
	Ending     *ending.Ending
	Steer      *steer.Steer
}

// Report is what the reaper did.
type Report struct {
	Looked    int `json:"looked"`    // active runs
	Restarted int `json:"restarted"` // runs that go on in a new execution, or that had none yet
	Halted    int `json:"halted"`    // runs whose record says cancelled or paused now
	Failed    int `json:"failed"`    // runs whose record says failed now, or that their extension was refused
	Cleared   int `json:"cleared"`   // runs that had ended, or never were
}

// Reap looks at every active run. One that cannot be judged now does not keep it from the others.
func (r *Reaper) Reap(ctx context.Context) (Report, error) {
	var report Report
	var errs []error
	for e, err := range active.All(ctx, r.Store.Table) {
		if err == nil {
			report.Looked++
			err = r.look(ctx, e, &report)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return report, errors.Join(errs...)
}

func (r *Reaper) look(ctx context.Context, e active.Entry, report *Report) error {
	rec, err := sheet.Load(ctx, r.Store, e.Run)
	young := time.Since(e.Since) < Grace
	switch {
	case errors.Is(err, sheet.ErrNoRun) && young:
		return nil // its start is about to write the record
	case errors.Is(err, sheet.ErrNoRun):
		report.Cleared++
		return active.Remove(ctx, r.Store.Table, e.Run)
	case err != nil:
		return err
	}
	asked, err := sheet.LoadControl(ctx, r.Store, e.Run)
	if err != nil {
		return err
	}
	if rec.Status.Ended() && !asked.Extends(rec) {
		report.Cleared++
		return r.Ending.Tell(ctx, rec) // whoever ended it may have died before telling
	}
	if done, err := r.halt(ctx, rec, asked, report); done || err != nil {
		return err
	}
	state, why, err := r.Executions.State(ctx, rec.ID, asked.Execution(rec))
	if err != nil || state == machine.Running {
		return err
	}
	if state == machine.Absent {
		if young {
			return nil
		}
		report.Restarted++
		return r.Executions.Start(ctx, rec.ID, asked.Execution(rec))
	}
	return r.died(ctx, rec.ID, state, why, report)
}

// halt carries out what is asked of a run, where whoever asked has died before, or slices were still at work then. It
// reports whether nothing else is to be done about the run. One that is paused needs nothing.
func (r *Reaper) halt(ctx context.Context, rec *sheet.Run, asked *sheet.Control, report *Report) (bool, error) {
	switch {
	case asked.Extends(rec), asked.Retries():
		return false, nil // that is what its execution is for
	case rec.Status == sheet.Paused && asked.Cancel == nil:
		return true, nil
	case !asked.Halts():
		return false, nil
	}
	after, err := r.Steer.Halt(ctx, rec)
	if err == nil && after.Status != rec.Status {
		report.Halted++
	}
	return true, err
}

// died decides about a run whose execution has ended. The record is read again first: the execution may have made it
// true just before its end.
func (r *Reaper) died(ctx context.Context, id string, state machine.State, why string, report *Report) error {
	rec, err := sheet.Load(ctx, r.Store, id)
	if err != nil {
		return err
	}
	asked, err := sheet.LoadControl(ctx, r.Store, id)
	switch {
	case err != nil:
		return err
	case rec.Status.Ended() && !asked.Extends(rec):
		report.Cleared++
		return r.Ending.Tell(ctx, rec)
	case state == machine.Aborted:
		return r.fail(ctx, rec, asked, "its execution was aborted", why, report)
	case rec.Restarts >= MaxRestarts:
		return r.fail(ctx, rec, asked, fmt.Sprintf("its execution died %d times", rec.Restarts+1), why, report)
	}
	rec.Restarts++
	if err := sheet.Save(ctx, r.Store, rec); errors.Is(err, table.ErrConflict) {
		return nil // somebody is at work on it; it is looked at again the next time
	} else if err != nil {
		return err
	}
	report.Restarted++
	return r.Executions.Start(ctx, id, asked.Execution(rec))
}

func (r *Reaper) fail(ctx context.Context, rec *sheet.Run, asked *sheet.Control, what, why string, report *Report) error {
	if why != "" {
		what += ": " + why
	}
	left := "what was saved stays, and the run can be resumed"
	if asked.Extends(rec) {
		left = "the run is as it was, and can be extended again"
	}
	rec, err := r.Ending.Fail(ctx, rec.ID, what+"; "+left)
	if err != nil {
		return err
	}
	report.Failed++
	return r.Ending.Tell(ctx, rec)
}
