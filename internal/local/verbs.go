package local

import (
	"context"
	"errors"
	"strings"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// HaltPatience is how long Cancel and Pause wait for the process that works on a run. It looks each second; calls under
// way are interrupted by a cancellation, and come to their end in a pause.
const HaltPatience = 10 * time.Second

// haltLook is how often they look whether it is done.
const haltLook = 20 * time.Millisecond

// Cancel ends a run, whoever works on it, and returns its record. Where nobody does, it makes the record true itself.
// Errors: ErrAtWork if the process that works on it does not answer in time: what is asked of it stands, and is done
// when it looks; those of run.Cancel.
func (s *State) Cancel(ctx context.Context, id string) (*sheet.Run, error) {
	if err := run.Cancel(ctx, s.Store, id); err != nil {
		return nil, err
	}
	return s.halted(ctx, id)
}

// Pause keeps a run from going on until it is continued. Otherwise it is as Cancel.
func (s *State) Pause(ctx context.Context, id, reason string) (*sheet.Run, error) {
	if err := run.Pause(ctx, s.Store, id, reason); err != nil {
		return nil, err
	}
	return s.halted(ctx, id)
}

// Retry makes the failed rows of a run ready to be run again, and lets the run go on; the caller has claimed it, and works
// on it next. A run that is at work by its record, though nobody works on it, is paused first.
func (s *State) Retry(ctx context.Context, id string, how run.RetryOptions) (told run.Retried, err error) {
	err = s.still(ctx, id, func() error {
		told, err = run.Retry(ctx, s.Ports(), run.Settings{}, id, how)
		return err
	})
	return told, err
}

// Extend adds rows to a run, as run.Extend does, and is otherwise as Retry.
func (s *State) Extend(ctx context.Context, req run.Request) (job *run.Job, told run.Extended, err error) {
	err = s.still(ctx, req.ID, func() error {
		job, told, err = run.Extend(ctx, s.Store, req)
		return err
	})
	return job, told, err
}

// still does something to a run of which the caller knows that nobody works on it, whatever its record says. If that fails,
// the run is as it was: one that goes on when it is resumed.
func (s *State) still(ctx context.Context, id string, do func() error) error {
	rec, err := sheet.Load(ctx, s.Store, id)
	if err != nil {
		return err
	}
	if rec.Status != sheet.Running && rec.Status != sheet.Parked {
		return do()
	}
	if err := run.Pause(ctx, s.Store, id, ""); err != nil {
		return err
	}
	if _, err := run.Settle(ctx, s.Ports(), run.Settings{}, id); err != nil {
		return err
	}
	if err := do(); err != nil {
		_, goOn := run.Continue(context.WithoutCancel(ctx), s.Store, id, sheet.Budget{})
		return errors.Join(err, goOn)
	}
	return nil
}

// halted returns the record once it says what was asked for.
func (s *State) halted(ctx context.Context, id string) (*sheet.Run, error) {
	for until := time.Now().Add(HaltPatience); ; {
		claim, err := s.Claim(id)
		if err == nil {
			rec, err := run.Settle(ctx, s.Ports(), run.Settings{}, id)
			return rec, errors.Join(err, claim.Release())
		}
		if !errors.Is(err, ErrAtWork) {
			return nil, err
		}
		rec, loadErr := sheet.Load(ctx, s.Store, id)
		if loadErr != nil || rec.Status == sheet.Paused || rec.Status.Ended() {
			return rec, loadErr
		}
		if time.Now().After(until) {
			return rec, err
		}
		select {
		case <-time.After(haltLook):
		case <-ctx.Done():
			return rec, context.Cause(ctx)
		}
	}
}

// Ports is for slices that only close what dead ones have left.
func (s *State) Ports() run.Ports {
	return run.Ports{Store: s.Store, Owner: s.Owner, Alive: func(owner string) bool {
		process, _, _ := strings.Cut(owner, "/")
		return process != s.Owner && s.alive(process)
	}}
}
