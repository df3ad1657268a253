package main

import (
	"context"
	"errors"
	"fmt"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// haltFlags are shared by cancel and pause.
type haltFlags struct {
	ID   string `arg:"" name:"run" help:"Id of the run."`
	JSON bool   `name:"json" help:"Print one JSON object about the run on standard output."`
	stateFlag
}

type cancelCmd struct{ haltFlags }

// Help implements kong.HelpProvider.
func (*cancelCmd) Help() string {
	return `Examples:
  sluice cancel monday
  sluice export monday --out sofar.csv      what was finished, with _status

Whoever works on the run stops within two seconds, also while it is parked: calls under way are interrupted, and what was
finished is kept. A row whose call was interrupted and must not be repeated says OUTCOME_UNKNOWN.
"sluice resume" takes a cancelled run up again.`
}

// Run implements the command.
func (c *cancelCmd) Run(a *app) error {
	return c.halt(a, sheet.Cancelled, (*local.State).Cancel)
}

type pauseCmd struct {
	haltFlags
	Reason string `placeholder:"TEXT" help:"Why; it is shown with the run."`
}

// Help implements kong.HelpProvider.
func (*pauseCmd) Help() string {
	return `Examples:
  sluice pause monday
  sluice pause monday --reason "the new key comes tomorrow"
  sluice resume monday

Calls under way come to their end, everything is saved, and nothing is called until "sluice resume".`
}

// Run implements the command.
func (c *pauseCmd) Run(a *app) error {
	return c.halt(a, sheet.Paused, func(st *local.State, ctx context.Context, id string) (*sheet.Run, error) {
		return st.Pause(ctx, id, c.Reason)
	})
}

// halt asks for what is wanted, and tells what has come of it.
func (c *haltFlags) halt(a *app, want sheet.Status, ask func(*local.State, context.Context, string) (*sheet.Run, error)) (err error) {
	ctx, cancel := a.context()
	defer cancel()
	st, err := a.open(ctx, c.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	rec, err := ask(st, ctx, c.ID)
	switch {
	case errors.Is(err, sheet.ErrNoRun):
		return noRun(c.ID, st)
	case errors.Is(err, run.ErrEnded):
		return err
	case errors.Is(err, local.ErrAtWork):
		return fmt.Errorf("%w, and has not stopped yet; what was asked for stands; `sluice runs %s` shows when it is done", err, clean(c.ID))
	case err != nil:
		return err
	case rec.Status != want:
		return fmt.Errorf("run %s %w meanwhile: it is %s", rec.ID, run.ErrEnded, rec.Status)
	}
	if c.JSON {
		return a.printJSON(newReport(rec, "", nil))
	}
	_, err = fmt.Fprintln(a.stdout, haltedText(rec, work{stateDir: c.State}))
	return err
}

// haltedText says how a run stands that was cancelled or paused, and how it goes on.
func haltedText(r *sheet.Run, w work) string {
	done := fmt.Sprintf("%s of %s rows done", number(r.Counts.Ended()), number(r.Sealed.Rows))
	if r.Status == sheet.Cancelled {
		return fmt.Sprintf("run %s was cancelled: %s and kept. To look at them: sluice export %s --out FILE%s", r.ID, done, r.ID, w.stateArg())
	}
	why := ""
	if r.Pause != nil && r.Pause.Reason != "" {
		why = " (" + clean(r.Pause.Reason) + ")"
	}
	return fmt.Sprintf("run %s is paused%s: %s, nothing is lost. To go on: sluice resume %s%s", r.ID, why, done, r.ID, w.stateArg())
}

// noRun says that there is no such run in the state folder.
func noRun(id string, st *local.State) error {
	return usagef("there is no run %q in %s; `sluice runs` lists them", id, st.Dir)
}
