package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// What people ask of a run from outside. Each verb writes down what is wanted; who works on the run does it. Where
// nobody works on it, Settle makes the record true. All of them may be repeated.

// ErrEnded: the run is over, so that what was asked makes no sense any more.
var ErrEnded = errors.New("has ended")

func endedAs(r *sheet.Run) error { return fmt.Errorf("run %s %w: it is %s", r.ID, ErrEnded, r.Status) }

// Cancel asks a run to stop for good: calls under way are interrupted, and what is finished is kept. An extension that is not
// done yet is withdrawn. Cancelling again changes nothing. Errors: ErrEnded if the run is over in another way; sheet.ErrNoRun.
func Cancel(ctx context.Context, st *store.Store, id string) error {
	r, asked, err := wanted(ctx, st, id)
	switch {
	case err != nil:
		return err
	case r.Status.Ended() && !asked.Extends(r) && r.Status == sheet.Cancelled:
		return nil
	case r.Status.Ended() && !asked.Extends(r):
		return endedAs(r)
	}
	// In this order: who has made the extension's rows the run's by now is told to stop.
	_, err = sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		if c.Cancel != nil {
			return false
		}
		c.Cancel = &sheet.Order{At: time.Now().UTC()}
		return true
	})
	if err == nil && asked.Extends(r) {
		err = decide(ctx, st, id, sheet.Extension{Number: asked.Extend.Number, At: time.Now().UTC(), Error: "it was cancelled before its rows were read"})
	}
	return err
}

// wanted is what is asked of a run, and what of that is done.
func wanted(ctx context.Context, st *store.Store, id string) (*sheet.Run, *sheet.Control, error) {
	asked, err := sheet.LoadControl(ctx, st, id)
	if err != nil {
		return nil, nil, err
	}
	r, err := sheet.Load(ctx, st, id)
	return r, asked, err
}

// Pause asks a run to stop until Continue: calls under way come to their end. Errors as of Cancel, and ErrAtWork while the run
// is being extended.
func Pause(ctx context.Context, st *store.Store, id, reason string) error {
	r, asked, err := wanted(ctx, st, id)
	if err != nil {
		return err
	}
	if asked.Extends(r) {
		return atRest(r, asked, "it can be paused")
	}
	if r.Status.Ended() {
		return endedAs(r)
	}
	_, err = sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		if c.Pause != nil {
			return false
		}
		c.Pause = &sheet.Order{At: time.Now().UTC(), Reason: reason}
		return true
	})
	return err
}

// Settle makes the record of a run say what was asked of it, once none of its slices is at work; until then, and
// where nothing was asked, it changes nothing. It returns the record as it stands then.
func Settle(ctx context.Context, p Ports, set Settings, id string) (*sheet.Run, error) {
	for try := 1; ; try++ {
		r, err := settleOnce(ctx, p, set, id)
		if !errors.Is(err, table.ErrConflict) || try == recordTries {
			return r, err
		}
	}
}

// recordTries is how often a record is read again when somebody else changes it at the same moment.
const recordTries = 10

func settleOnce(ctx context.Context, p Ports, set Settings, id string) (*sheet.Run, error) {
	r, err := sheet.Load(ctx, p.Store, id) // before what is asked: Continue changes them the other way round
	if err != nil || r.Status.Ended() {
		return r, err
	}
	asked, err := sheet.LoadControl(ctx, p.Store, id)
	if err != nil || !asked.Halts() || asked.Cancel == nil && (r.Status == sheet.Paused || r.Status == sheet.Staging) {
		return r, err
	}
	if free, err := closeParts(ctx, p, set, r); err != nil || !free {
		return r, err
	}
	if err := r.Refresh(ctx, p.Store); err != nil {
		return r, err
	}
	now := time.Now().UTC()
	r.WakeAt, r.Pause = time.Time{}, nil
	if asked.Cancel != nil {
		r.Status, r.FinishedAt = sheet.Cancelled, now
	} else {
		r.Status, r.Pause = sheet.Paused, &sheet.Pause{Reason: asked.Pause.Reason, At: now}
	}
	return r, sheet.Save(ctx, p.Store, r)
}

// closeParts brings the parts of the run that nobody works on into the state in which they can stay: a slice that died has left
// a journal, and so has one that parked where the journal expires. It reports whether nobody works on any. Who takes one
// after that finds what is asked, and does nothing.
func closeParts(ctx context.Context, p Ports, set Settings, r *sheet.Run) (free bool, err error) {
	free = true
	var job *Job
	for _, part := range r.Parts() {
		cp, err := sheet.LoadCheckpoint(ctx, p.Store, part.ID, part.Shard)
		switch {
		case errors.Is(err, table.ErrNotFound):
			continue
		case err != nil:
			return false, err
		case cp.Status == sheet.ShardDone:
			continue
		case p.owned(cp, time.Now()):
			free = false
			continue
		case cp.Owner == "" && set.Keep == 0:
			continue
		}
		if job == nil {
			if job, err = LoadJob(ctx, p.Store, r.ID); err != nil {
				return false, err
			}
		}
		res, err := job.slicePart(ctx, p, part, set)
		switch {
		case err != nil && !Permanent(err): // what is wrong for good does not keep the run from being cancelled
			return false, err
		case res.Outcome == Busy:
			free = false
		}
	}
	return free, nil
}

func (j *Job) slicePart(ctx context.Context, p Ports, part sheet.Part, set Settings) (Result, error) {
	if part.ID != j.Run.ID {
		return j.makeSteps(ctx, p, set)
	}
	return j.Slice(ctx, p, part.Shard, set)
}

// owned reports whether a slice that may be alive works on the shard.
func (p Ports) owned(cp *sheet.Checkpoint, now time.Time) bool {
	return cp.Owner != "" && now.Before(cp.LeaseUntil) && (p.Alive == nil || p.Alive(cp.Owner))
}

// Continue lets a run go on that was paused, was cancelled or has failed, with what is left of its rows. Where the budget
// says something, it stands instead of the map's from now on. A run that nothing keeps from going on is left as it is.
// Errors: ErrEnded if every row has ended; ErrAtWork while it is being extended; sheet.ErrNoRun.
func Continue(ctx context.Context, st *store.Store, id string, raise sheet.Budget) (*sheet.Run, error) {
	halted := false
	for try := 1; ; try++ {
		r, err := continueOnce(ctx, st, id, raise, &halted)
		if !errors.Is(err, table.ErrConflict) || try == recordTries {
			return r, err
		}
	}
}

func continueOnce(ctx context.Context, st *store.Store, id string, raise sheet.Budget, halted *bool) (*sheet.Run, error) {
	r, asked, err := wanted(ctx, st, id)
	switch {
	case err != nil:
		return nil, err
	case asked.Extends(r):
		return nil, atRest(r, asked, "it goes on by itself")
	case r.Status == sheet.Completed:
		return nil, endedAs(r)
	}
	_, err = sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		halts, raised := c.Halts(), c.Raise(raise)
		*halted = *halted || halts
		c.Cancel, c.Pause, c.Retry = nil, nil, nil
		return halts || raised
	})
	if err != nil || !*halted && !r.Status.Ended() && r.Status != sheet.Paused {
		return r, err
	}
	reopen(r)
	return r, sheet.Save(ctx, st, r)
}

// reopen makes a record that of a run which goes on.
func reopen(r *sheet.Run) {
	r.Status, r.FinishedAt, r.WakeAt, r.Pause, r.Error = sheet.Running, time.Time{}, time.Time{}, nil, ""
	if r.StartedAt.IsZero() {
		r.Status = sheet.Staging // cancelled before its input was sealed
	}
	r.Continued, r.Restarts = r.Continued+r.Restarts+1, 0
}
