package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/cost"
	"sluice/internal/local"
)

type runsCmd struct {
	ID   string `arg:"" optional:"" name:"run" help:"Show this run."`
	JSON bool   `name:"json" help:"Print JSON: one object per line."`
	Cost bool   `help:"With a run: what it used, and what that costs at AWS list prices, also per million rows."`
	placeFlags
}

// Help implements kong.HelpProvider.
func (*runsCmd) Help() string {
	return `Examples:
  sluice runs                  all runs, the newest first
  sluice runs monday           one run in detail
  sluice runs monday --cost    what its work costs on AWS
  sluice runs --json
  sluice runs monday --cost --api https://abc.execute-api.eu-central-1.amazonaws.com/v1

It only reads, and works while another process is at work on the runs. A run that is "interrupted" was at work when
its process ended; "sluice resume" goes on with it.`
}

// Run implements the command.
func (c *runsCmd) Run(a *app) error {
	ctx, cancel := a.context()
	defer cancel()
	if c.Cost && c.ID == "" {
		return usagef("--cost is for one run: sluice runs RUN --cost; `sluice runs` lists them")
	}
	return c.work(ctx, a,
		func(d deployment) error { return c.show(ctx, a, d) },
		func(st *local.State) error { return c.show(ctx, a, folder{st}) })
}

// place is where runs are: a state folder, or a deployment.
type place interface {
	entries(ctx context.Context) ([]entry, error)
	entry(ctx context.Context, id string) (entry, error)
}

func (c *runsCmd) show(ctx context.Context, a *app, p place) error {
	if c.ID == "" {
		return c.list(ctx, a, p)
	}
	e, err := p.entry(ctx, c.ID)
	if err != nil {
		return err
	}
	if !c.Cost {
		e.Bill = nil
	}
	switch {
	case c.JSON:
		return a.printJSON(e)
	case c.Cost:
		return writeBill(a.stdout, e)
	}
	return printRun(a, e)
}

// entry is a run in a listing.
type entry struct {
	report
	Name        string        `json:"name"`
	AtWork      bool          `json:"atWork"` // a living process is working on it, or waits to go on with it
	CreatedAt   *time.Time    `json:"createdAt"`
	WakeAt      *time.Time    `json:"wakeAt"`
	Error       string        `json:"error,omitempty"`
	Pause       *sheet.Pause  `json:"pause,omitempty"` // of a run that is paused
	Holds       []run.Hold    `json:"holds,omitempty"`
	Waits       sheet.Waiting `json:"waits,omitzero"`
	Working     int           `json:"working,omitempty"`     // rows that are at work
	Interrupted int           `json:"interrupted,omitempty"` // rows whose process has ended in the middle
	Bill        *cost.Bill    `json:"bill,omitempty"`        // with --cost

	asked          string // what the process at work has been asked for, and has not done yet
	created        time.Time
	mapFile, input string
}

func newEntry(st *local.State, r *sheet.Run) entry {
	return entry{report: newReport(r, r.Out, finishedIn(st.Dir, r)), Name: r.Name, AtWork: st.AtWork(r.ID), CreatedAt: instant(r.CreatedAt),
		WakeAt: instant(r.WakeAt), Error: r.Error, Pause: r.Pause, created: r.CreatedAt, mapFile: r.MapFile, input: r.Input}
}

// status says for people what the record cannot know: that nobody is at work any more.
func (e entry) status() string {
	if !e.AtWork && (e.Status == string(sheet.Running) || e.Status == string(sheet.Staging)) {
		return "interrupted"
	}
	return cmp.Or(e.asked, e.Status)
}

func (c *runsCmd) list(ctx context.Context, a *app, p place) error {
	entries, err := p.entries(ctx)
	if err != nil {
		return err
	}
	// Ids that people choose say nothing about the time.
	slices.SortStableFunc(entries, func(a, b entry) int { return b.created.Compare(a.created) })
	if c.JSON {
		for _, e := range entries {
			if err := a.printJSON(e); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	if len(entries) == 0 {
		fmt.Fprintln(w, "There are no runs yet.")
	} else {
		fmt.Fprintln(w, "ID\tNAME\tSTATUS\tROWS\tFAILED\tSTARTED\tWAKES")
	}
	now := time.Now()
	for _, e := range entries {
		done := e.Completed + e.Failed
		fmt.Fprintf(w, "%s\t%s\t%s\t%s/%s\t%s\t%s\t%s\n", clean(e.ID), shorten(clean(e.Name), 40), e.status(),
			number(done), number(done+e.Waiting), number(e.Failed), when(e.StartedAt, now), when(e.WakeAt, now))
	}
	return w.Flush()
}

func when(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return clock(*t, now)
}

func printRun(a *app, e entry) error {
	now := time.Now()
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, clean(fmt.Sprintf(format, args...)))
	}
	line("run", "%s", e.ID)
	line("name", "%s", e.Name)
	line("status", "%s", e.status())
	line("map", "%s", e.mapFile)
	line("input", "%s", e.input)
	line("rows", "%s of %s done, %s failed, %s", number(e.Completed+e.Failed), number(e.Completed+e.Failed+e.Waiting), number(e.Failed),
		plural(e.Duplicates, "duplicate", "duplicates"))
	line("calls", "%s: %s dispatched (%s refused with 429), %s reused, %s cached", number(e.Calls.Logical),
		number(e.Calls.Dispatched), number(e.Calls.Refused429), number(e.Calls.Reused), number(e.Calls.Cached))
	line("cost", "%s", e.Cost)
	line("started", "%s", when(e.StartedAt, now))
	line("finished", "%s", when(e.FinishedAt, now))
	if e.WakeAt != nil && !sheet.Status(e.Status).Ended() {
		line("wakes", "%s", when(e.WakeAt, now))
	}
	if n := e.Working; n > 0 {
		line("at work", "%s", plural(int64(n), "row", "rows"))
	}
	if n := e.Interrupted; n > 0 {
		line("begun", "%s, by a process that has ended; what is saved of them is not done again", plural(int64(n), "row", "rows"))
	}
	if n := e.Waits.Answers; n > 0 {
		line("waits", "%s; sluice rows %s --status waiting", plural(n, "row waits for an answer", "rows wait for answers"), e.ID)
	}
	if n := e.Waits.Asleep; n > 0 {
		line("sleeps", "%s", plural(n, "row", "rows"))
	}
	for _, h := range e.Holds {
		line("held", "%s", holdOf(h).text(now))
	}
	for _, s := range e.Finish {
		line("finish", "%s", s.text())
	}
	if e.Out != nil {
		line("output", "%s", *e.Out)
	}
	if e.Pause != nil {
		line("paused", "%s %s", clock(e.Pause.At, now), e.Pause.Reason)
	}
	if e.Error != "" {
		line("error", "%s", e.Error)
	}
	return w.Flush()
}

// printJSON prints one object on one line.
func (a *app) printJSON(v any) error {
	text, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, text)
	return err
}
