// Package steer carries out in the cloud what is asked of runs: it starts the execution of a run that is to go on, and
// stops that of one that is not. The record and the control item say what is wanted (package run has the verbs); here it is
// made so, and made again by the reaper where whoever asked has died before.
package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Steer does what is asked of runs. Its fields are set once.
type Steer struct {
	Store      *store.Store
	Executions machine.Executions
	Ending     *ending.Ending
	Settings   run.Settings // of the slices that close what others have left
}

// Kick makes the run do what is asked of it by now; api.Kicker. Kicking again is harmless.
func (s *Steer) Kick(ctx context.Context, id string) error {
	rec, err := sheet.Load(ctx, s.Store, id)
	if err != nil {
		return err
	}
	asked, err := sheet.LoadControl(ctx, s.Store, id)
	switch {
	case err != nil:
		return err
	case asked.Extends(rec), asked.Retries() && !rec.Status.Ended():
		// It rests, and its execution begins with what is asked.
	case asked.Halts() && (rec.Status == sheet.Cancelled || !rec.Status.Ended()):
		_, err := s.Halt(ctx, rec)
		return err
	case rec.Status.Ended() || rec.Status == sheet.Paused:
		return nil
	}
	// The list first: it is where the reaper looks, and a run that has ended once is not on it any more.
	if err := active.Add(ctx, s.Store.Table, id); err != nil {
		return err
	}
	if err := s.Executions.Start(ctx, id, asked.Execution(rec)); err != nil {
		return errors.Join(fmt.Errorf("run %s goes on, but was not started", id), err)
	}
	return nil
}

// Halt carries out a cancellation or a pause as far as that is possible now, and returns the record. The execution is
// stopped: it may be waiting for days. Slices that are at work are not stopped by that; they see what is asked, and the
// last of them makes the record true (Settled).
func (s *Steer) Halt(ctx context.Context, rec *sheet.Run) (*sheet.Run, error) {
	if err := s.Executions.Stop(ctx, rec.ID, rec.Execution(), "sluice: the run is cancelled or paused"); err != nil {
		return rec, err
	}
	return Settled(ctx, run.Ports{Store: s.Store, Owner: strings.ToLower(ulid.Make().String())}, s.Settings, s.Ending, rec.ID)
}

// Settled makes the record true if nothing of the run is at work any more, and tells the bus about an end, and once about a pause.
func Settled(ctx context.Context, p run.Ports, set run.Settings, end *ending.Ending, id string) (*sheet.Run, error) {
	began := time.Now()
	rec, err := run.Settle(ctx, p, set, id)
	switch {
	case err != nil:
		return rec, err
	case rec.Status.Ended():
		return rec, end.Tell(ctx, rec)
	case rec.Status == sheet.Paused && !rec.Pause.At.Before(began): // it was not before
		return rec, end.TellPause(ctx, rec)
	}
	return rec, nil
}
