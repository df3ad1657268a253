// Package ending is the end of a run in the cloud, however it comes: the record that says it, the event that tells it,
// and the list of active runs that forgets it, in this order. Each step may be repeated; the reaper completes an ending
// that was cut off, because the list is what it looks at.
package ending

import (
	"context"
	"errors"

	"sluice/functions/internal/bus"
	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Ending ends runs.
type Ending struct {
	Store     *store.Store
	Announcer bus.Announcer
}

// tries is how often the record is read again when somebody else changes it at the same moment.
const tries = 5

// Fail makes the record say that the run failed, and why. A run that has ended stays as it ended: the first reason is
// the right one. So does a paused one whose last execution was for an extension: it has not failed by that. It returns the record
// as it stands then.
func (e *Ending) Fail(ctx context.Context, id, why string) (*sheet.Run, error) {
	if err := run.RefuseExtend(ctx, e.Store, id, why); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		rec, err := sheet.Load(ctx, e.Store, id)
		if err != nil || rec.Status.Ended() || rec.Status == sheet.Paused && rec.Unextended() {
			return rec, err
		}
		// The map may be what is wrong: it is not read.
		err = (&run.Job{Run: rec}).Fail(ctx, e.Store, errors.New(why))
		if err == nil || !errors.Is(err, table.ErrConflict) || try == tries {
			return rec, err
		}
	}
}

// Tell announces how the run has ended, and takes it off the list, unless it is to be extended already. Of a run that has not
// ended there is nothing to tell.
func (e *Ending) Tell(ctx context.Context, rec *sheet.Run) error {
	if !rec.Status.Ended() {
		return nil
	}
	if err := e.Announcer.Announce(ctx, bus.Of(rec)); err != nil {
		return err
	}
	return active.Ended(ctx, e.Store, rec)
}

// TellPause announces that a run is paused, unless it is only until its failed rows are ready to be run again. A pause does not
// fail because nobody can be told of it: it is news, and the record says it.
func (e *Ending) TellPause(ctx context.Context, rec *sheet.Run) error {
	asked, err := sheet.LoadControl(ctx, e.Store, rec.ID)
	if err == nil && !asked.Retries() {
		_ = e.Announcer.Announce(ctx, bus.OfPause(rec))
	}
	return err
}

// Export is the name of the object that holds a completed run's table.
func Export(id string) string { return "runs/" + id + "/result.csv" }
