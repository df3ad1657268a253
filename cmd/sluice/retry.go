package main

import (
	"encoding/json"
	"fmt"

	"sluice/internal/core/run"
	"sluice/internal/local"
)

type retryCmd struct {
	ID string `arg:"" name:"run" help:"Id of the run."`
	endFlags
	placeFlags
	Unknown     string  `enum:",repeat,accept" default:"" help:"What to do with rows that failed with OUTCOME_UNKNOWN: repeat (make the call again, though it may have been executed) or accept (take it for executed, with --value). Default: leave them as they are."`
	Value       *string `placeholder:"JSON" help:"With --unknown accept: what the column takes as the call's result; default null."`
	Concurrency int     `placeholder:"N" help:"Rows at work at once; default: as the run was started."`
}

// Help implements kong.HelpProvider.
func (*retryCmd) Help() string {
	return `Examples:
  sluice rows monday --status failed
  sluice retry monday
  sluice retry monday --unknown repeat                             also calls that may have been executed
  sluice retry monday --unknown accept --value '{"sent": true}'

The failed rows of a run that has ended, or is paused or parked, are run again; no other row is touched. What their earlier
calls have brought is kept and not paid for again; the call that failed is made again, with all attempts before it.
A run that was cancelled, or has failed as a whole, goes on with the rows that had not ended as well.`
}

// Run implements the command.
func (c *retryCmd) Run(a *app) error {
	i := a.interruption()
	defer i.end()
	how, out, err := c.check()
	if err != nil {
		return err
	}
	return c.work(i.ctx, a,
		func(d deployment) error { return c.retryAt(a, i, d, how, out) },
		func(st *local.State) error { return c.retry(a, i, st, how, out) })
}

func (c *retryCmd) check() (how run.RetryOptions, out string, err error) {
	how = run.RetryOptions{Unknown: run.Unknown(c.Unknown)}
	if c.Value != nil {
		if how.Unknown != run.AcceptUnknown {
			return how, "", usagef("--value is for --unknown accept")
		}
		if how.Value = json.RawMessage(*c.Value); !json.Valid(how.Value) {
			return how, "", usagef("--value %s is not JSON; a text needs quotes: --value '\"text\"'", *c.Value)
		}
	}
	out, err = c.endFlags.check()
	return how, out, err
}

func (c *retryCmd) retry(a *app, i *interruption, st *local.State, how run.RetryOptions, out string) error {
	claim, err := st.Claim(c.ID)
	if err != nil {
		return atWork(err, c.ID)
	}
	defer func() { _ = claim.Release() }() // the end of the process releases it too
	job, err := loadJob(i.ctx, st, c.ID)
	if err != nil {
		return err
	}
	if job.Run.StartedAt.IsZero() {
		return usagef("run %s: its input was not read to the end; start it again with the same `sluice run ... --run %s`", c.ID, c.ID)
	}
	if err := checkSecrets(i.ctx, a.secretsSource(), job.Map.Tools()); err != nil {
		return err
	}
	told, err := st.Retry(i.ctx, c.ID, how)
	if err != nil {
		return err
	}
	w := work{endFlags: c.endFlags, out: out, concurrency: c.Concurrency, stateDir: c.dir()}
	if !c.Quiet || told.Unknown > 0 {
		fmt.Fprint(a.stderr, retriedText(c.ID, told, w))
	}
	if job, err = loadJob(i.ctx, st, c.ID); err != nil {
		return err
	}
	return a.work(i, st, job, w)
}

// retriedText says what is run again, and what is not and why.
func retriedText(id string, told run.Retried, w work) string {
	text := "no failed row is run again\n"
	if told.Rows > 0 {
		text = fmt.Sprintf("%s run again\n", plural(told.Rows, "failed row is", "failed rows are"))
	}
	if told.Unknown > 0 {
		text += fmt.Sprintf(`%s as before: nobody knows whether their call was executed (OUTCOME_UNKNOWN).
  see which     sluice rows %s --status failed%s
  call again    sluice retry %s%s --unknown repeat
  take as done  sluice retry %s%s --unknown accept --value JSON
`, plural(told.Unknown, "failed row stays", "failed rows stay"), id, w.stateArg(), id, w.stateArg(), id, w.stateArg())
	}
	return text
}
