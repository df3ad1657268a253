package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// haltFlags are shared by cancel and pause.
type haltFlags struct {
	ID   string `arg:"" name:"run" help:"Id of the run."`
	JSON bool   `name:"json" help:"Print one JSON object about the run on standard output."`
	placeFlags
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
	return c.halt(a, sheet.Cancelled, (*local.State).Cancel, (*client.Client).Cancel)
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
	}, func(d *client.Client, ctx context.Context, id string) (api.Standing, error) {
		return d.Pause(ctx, id, c.Reason)
	})
}

// halt asks for what is wanted, and tells what has come of it.
func (c *haltFlags) halt(a *app, want sheet.Status, ask func(*local.State, context.Context, string) (*sheet.Run, error),
	askAt func(*client.Client, context.Context, string) (api.Standing, error)) error {
	ctx, cancel := a.context()
	defer cancel()
	return c.work(ctx, a,
		func(d deployment) error { return c.haltAt(ctx, a, d, want, askAt) },
		func(st *local.State) error { return c.haltHere(ctx, a, st, want, ask) })
}

func (c *haltFlags) haltHere(ctx context.Context, a *app, st *local.State, want sheet.Status, ask func(*local.State, context.Context, string) (*sheet.Run, error)) error {
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
	return c.tell(a, rec, work{stateDir: c.dir()})
}

func (c *haltFlags) tell(a *app, rec *sheet.Run, w work) error {
	if c.JSON {
		return a.printJSON(newReport(rec, "", nil))
	}
	_, err := fmt.Fprintln(a.stdout, haltedText(rec, w))
	return err
}

// haltLook is how often a deployment is asked whether it has done what was wanted.
const haltLook = 500 * time.Millisecond

// haltAt is halt for a run of a deployment.
func (c *haltFlags) haltAt(ctx context.Context, a *app, d deployment, want sheet.Status,
	ask func(*client.Client, context.Context, string) (api.Standing, error)) error {
	if _, err := ask(d.Client, ctx, c.ID); err != nil {
		return d.named(err, c.ID)
	}
	for until := time.Now().Add(local.HaltPatience); ; {
		v, err := d.Run(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case v.Status == want:
			return c.tell(a, recordOf(v), work{api: c.placeArg()})
		case v.Status.Ended():
			return fmt.Errorf("run %s %w meanwhile: it is %s", v.Run, run.ErrEnded, v.Status)
		case time.Now().After(until):
			return fmt.Errorf("run %s has not stopped yet; what was asked for stands; `sluice runs %s` shows when it is done", v.Run, clean(c.ID))
		}
		select {
		case <-time.After(haltLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
