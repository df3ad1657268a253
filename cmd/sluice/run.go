package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
	"sluice/resolvers"
)

type runCmd struct {
	Map   string `arg:"" help:"Map file (YAML or JSON)."`
	Tools string `placeholder:"FILE" help:"Tool catalogue (YAML or JSON); needed if the map makes calls."`
	input
	endFlags
	placeFlags
	ID          string            `name:"run" placeholder:"ID" help:"Name of the run. The same name with the same map and input goes on with it; with others it is refused. Default: a new one."`
	Set         map[string]string `mapsep:"none" placeholder:"K=V" help:"Value of a variable of the map; may be repeated."`
	Concurrency int               `placeholder:"N" help:"Rows at work at once; default: what the map says, or automatic."`
	Force       bool              `help:"Do not reuse results of earlier runs (of tools with a cache)."`
	Limit       int64             `placeholder:"N" help:"Read only the first N rows."`
	Extend      bool              `help:"Add the rows of --in that the run named by --run does not have to that run, and compute them alone."`
	Statuses    bool              `name:"status-columns" help:"Write _status and _error also when no row failed."`
}

// endFlags say how a run ends; run and resume share them.
type endFlags struct {
	Out   string `placeholder:"FILE" help:"Where to write the finished table: .csv or .jsonl, - for CSV on standard output. It appears whole or not at all."`
	JSON  bool   `name:"json" help:"Print one JSON object about the run at its end on standard output."`
	Quiet bool   `short:"q" help:"No progress and no summary; errors only."`
}

func (f *endFlags) check() (out string, err error) {
	if f.JSON && f.Out == "-" {
		return "", usagef("--json and --out - would both write to standard output; give --out a file")
	}
	return checkOut(f.Out)
}

// Help implements kong.HelpProvider.
func (*runCmd) Help() string {
	return `Examples:
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --out enriched.csv
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --limit 10        try ten rows first
  cat leads.jsonl | sluice run upper.map.yaml --in - --out -                    from a pipe to a pipe
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --run monday --set country=AT
  sluice run leads.map.yaml --tools tools.yaml --in more.csv --run monday --extend
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --out enriched.csv --api https://abc.execute-api.eu-central-1.amazonaws.com/v1

With --extend, rows whose key the run has are duplicates; without a key in the map, the input must begin with the rows
that the run has. The table that is written holds all rows.

Ctrl-C parks the run: nothing is lost, and "sluice resume" goes on with it. A second Ctrl-C stops at once. A run of a
deployment goes on there; Ctrl-C ends the watching.`
}

// Run implements the command.
func (c *runCmd) Run(a *app) error {
	i := a.interruption()
	defer i.end()
	remote, err := c.remote(a)
	if err != nil {
		return err
	}
	if remote != nil {
		return c.runAt(a, i, deployment{remote})
	}
	s, out, err := c.check(i.ctx, a)
	if err != nil {
		return err
	}
	st, err := a.create(i.ctx, c.dir())
	if err != nil {
		return err
	}
	return errors.Join(c.start(a, i, st, s, out), st.Close())
}

// check finds what is wrong with the arguments and files before anything is written or called.
func (c *runCmd) check(ctx context.Context, a *app) (*spec, string, error) {
	s, err := loadSpec(c.Map, c.Tools)
	if err != nil {
		return nil, "", err
	}
	out, err := c.checkFlags()
	if err != nil {
		return nil, "", err
	}
	return s, out, checkSecrets(ctx, a.secretsSource(), s.m.Tools())
}

func (c *runCmd) checkFlags() (out string, err error) {
	switch {
	case c.Concurrency < 0:
		return "", usagef("--concurrency %d: it must be positive", c.Concurrency)
	case c.Limit < 0:
		return "", usagef("--limit %d: it must be positive", c.Limit)
	case c.Extend && c.ID == "":
		return "", usagef("--extend needs --run: which run is to be extended")
	}
	return c.endFlags.check()
}

func (c *runCmd) start(a *app, i *interruption, st *local.State, s *spec, out string) error {
	req, err := c.request(i.ctx, a, s, out)
	if err != nil {
		return err
	}
	claim, err := st.Claim(req.ID)
	if err != nil {
		return atWork(err, req.ID)
	}
	defer func() { _ = claim.Release() }() // the end of the process releases it too
	job, err := c.begin(a, i, st, req)
	if err != nil {
		return err
	}
	return a.work(i, st, job, work{endFlags: c.endFlags, out: out, concurrency: c.Concurrency, stateDir: c.dir()})
}

// begin starts the run, or extends it.
func (c *runCmd) begin(a *app, i *interruption, st *local.State, req run.Request) (*run.Job, error) {
	if !c.Extend {
		job, err := run.Start(i.ctx, st.Store, req)
		return job, startError(err)
	}
	job, told, err := st.Extend(i.ctx, req)
	if errors.Is(err, sheet.ErrNoRun) {
		return nil, usagef("there is no run %q to extend in %s; without --extend it is started", req.ID, st.Dir)
	}
	if err == nil {
		c.tellExtended(a, told)
	}
	return job, startError(err)
}

// tellExtended says what an extension has brought.
func (c *runCmd) tellExtended(a *app, told run.Extended) {
	if !c.Quiet {
		fmt.Fprintf(a.stderr, "%s; %s\n", plural(told.Rows, "new row", "new rows"), plural(told.Duplicates, "duplicate", "duplicates"))
	}
}

func (c *runCmd) request(ctx context.Context, a *app, s *spec, out string) (run.Request, error) {
	format, err := c.options(c.Limit)
	if err != nil {
		return run.Request{}, err
	}
	mark, err := c.fingerprint()
	if err != nil {
		return run.Request{}, usage(err)
	}
	id := c.ID
	if id == "" {
		id = strings.ToLower(ulid.Make().String())
	}
	return run.Request{
		ID: id, Documents: s.docs, Set: c.Set, InputName: c.In, Format: format,
		Input:     func() (io.ReadCloser, error) { return c.open(ctx, a.stdin) },
		Seal:      intake.SealOptions{Fingerprint: mark, Recheck: c.fingerprint, Progress: c.reading(a.stderr)},
		Resolvers: resolvers.All(), Concurrency: c.Concurrency, Force: c.Force, Out: out, Statuses: c.Statuses,
	}, nil
}

// reading tells now and then how much of a long input has been read.
func (c *runCmd) reading(w io.Writer) func(int64) {
	told := time.Now()
	return func(rows int64) {
		if now := time.Now(); !c.Quiet && now.Sub(told) >= lineEvery {
			told = now
			fmt.Fprintf(w, "%s reading the input: %s rows\n", now.Format("15:04:05"), number(rows))
		}
	}
}

// startError tells mistakes in what was given from failures of the machine.
func startError(err error) error {
	if err == nil || local.StoreFailed(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return usage(err)
}

func atWork(err error, id string) error {
	if errors.Is(err, local.ErrAtWork) {
		return fmt.Errorf("%w; `sluice runs %s` shows how far it is", err, clean(id))
	}
	return err
}

type resumeCmd struct {
	ID string `arg:"" name:"run" help:"Id of the run."`
	endFlags
	placeFlags
	Concurrency int     `placeholder:"N" help:"Rows at work at once; default: as the run was started."`
	BudgetCalls int64   `placeholder:"N" help:"Calls that the run may dispatch in all, instead of what its map allows."`
	BudgetCost  float64 `placeholder:"X" help:"What the run may cost in all, in the money unit of its tools, instead of what its map allows."`
}

// Help implements kong.HelpProvider.
func (*resumeCmd) Help() string {
	return `Examples:
  sluice resume monday
  sluice resume monday --out enriched.jsonl      another output than the run was started with
  sluice resume monday --budget-cost 75          a run that its budget has paused

A run goes on with the map, the tools and the input that it was started with, whatever has become of the files. That
holds for a run that is parked or paused, was interrupted or cancelled, or has failed for a reason that has passed.
A run that is completed is not run again: its result is printed, and its output is written again. "sluice retry" runs
its failed rows again.`
}

// Run implements the command.
func (c *resumeCmd) Run(a *app) error {
	i := a.interruption()
	defer i.end()
	out, err := c.check()
	if err != nil {
		return err
	}
	return c.work(i.ctx, a,
		func(d deployment) error { return c.resumeAt(a, i, d, out) },
		func(st *local.State) error { return c.resume(a, i, st, out) })
}

func (c *resumeCmd) check() (string, error) {
	switch {
	case c.BudgetCalls < 0:
		return "", usagef("--budget-calls %d: it must be positive", c.BudgetCalls)
	case !(c.BudgetCost >= 0 && c.BudgetCost < maxMoney):
		return "", usagef("--budget-cost %v: it must be positive", c.BudgetCost)
	}
	return c.endFlags.check()
}

// maxMoney bounds what can be counted in millionths.
const maxMoney = 9e12

func (c *resumeCmd) resume(a *app, i *interruption, st *local.State, out string) error {
	claim, err := st.Claim(c.ID)
	if err != nil {
		return atWork(err, c.ID)
	}
	defer func() { _ = claim.Release() }() // the end of the process releases it too
	job, err := loadJob(i.ctx, st, c.ID)
	if err != nil {
		return err
	}
	if job.Run.Status == sheet.Staging {
		return usagef("run %s: its input was not read to the end; start it again with the same `sluice run ... --run %s`", c.ID, c.ID)
	}
	w := work{endFlags: c.endFlags, out: out, concurrency: c.Concurrency, stateDir: c.dir(), again: true,
		raise: sheet.Budget{Calls: c.BudgetCalls, CostMicros: int64(math.Round(c.BudgetCost * 1e6))}}
	if !w.ended(job) {
		if err := checkSecrets(i.ctx, a.secretsSource(), job.CalledTools(st.Resolvers)); err != nil {
			return err
		}
	}
	return a.work(i, st, job, w)
}

// loadJob loads a run for a command that names it.
func loadJob(ctx context.Context, st *local.State, id string) (*run.Job, error) {
	job, err := run.LoadJob(ctx, st.Store, id)
	if errors.Is(err, sheet.ErrNoRun) {
		return nil, noRun(id, st)
	}
	return job, err
}
