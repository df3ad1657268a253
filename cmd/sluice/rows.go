package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"sluice/internal/api"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

type rowsCmd struct {
	ID     string `arg:"" name:"run" help:"Id of the run."`
	Status string `enum:",completed,failed,held,waiting,working,interrupted,pending,cancelled" default:"" help:"Only rows of this status: completed, failed, held, waiting (for an answer, or asleep), working, interrupted, pending or cancelled."`
	JSON   bool   `name:"json" help:"Print JSON: one object per line, with input, cells and error of the row."`
	placeFlags
}

// Help implements kong.HelpProvider.
func (*rowsCmd) Help() string {
	return `Examples:
  sluice rows monday --status failed
  sluice rows monday --json | jq .cells

Rows that are held or wait tell for what, and until when. It only reads, and works while another process is at work on the run.`
}

// Run implements the command.
func (c *rowsCmd) Run(a *app) (err error) {
	ctx, cancel := a.context()
	defer cancel()
	out := bufio.NewWriter(a.stdout)
	defer func() { err = errors.Join(err, out.Flush()) }()
	return c.work(ctx, a,
		func(d deployment) error { return c.fetch(ctx, out, d) },
		func(st *local.State) error {
			job, err := loadJob(ctx, st, c.ID)
			if err != nil {
				return err
			}
			return c.print(ctx, out, job.Run.Status, c.saved(ctx, st, job))
		})
}

// fetch shows the rows of a deployment.
func (c *rowsCmd) fetch(ctx context.Context, out io.Writer, d deployment) error {
	v, err := d.Run(ctx, c.ID)
	if err != nil {
		return d.named(err, c.ID)
	}
	return c.print(ctx, out, v.Status, d.Rows(ctx, c.ID, c.Status))
}

// saved yields the rows of a state folder that are asked for.
func (c *rowsCmd) saved(ctx context.Context, st *local.State, job *run.Job) iter.Seq2[api.Row, error] {
	return func(yield func(api.Row, error) bool) {
		for v, err := range job.Rows(ctx, run.Ports{Store: st.Store}) {
			var row api.Row
			if err == nil && c.Status != "" && v.Status != c.Status {
				continue
			}
			if err == nil {
				row, _, err = api.RowOf(v)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (c *rowsCmd) print(ctx context.Context, out io.Writer, status sheet.Status, rows iter.Seq2[api.Row, error]) error {
	if status == sheet.Staging && !c.JSON {
		_, err := fmt.Fprintln(out, "The run's input is still being read.")
		return err
	}
	if !c.JSON {
		fmt.Fprintf(out, "%7s  %-9s  %s\n", "ROW", "STATUS", "CELLS, ERROR OR WAIT  |  INPUT")
	}
	now := time.Now()
	for row, err := range rows {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = c.row(out, row, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// How much of a row a line of the table shows.
const (
	detailWidth = 160
	inputWidth  = 120
)

func (c *rowsCmd) row(out io.Writer, v api.Row, now time.Time) error {
	if c.JSON {
		text, err := marshal(v)
		if err != nil {
			return fmt.Errorf("row %d: %w", v.Row, err)
		}
		_, err = fmt.Fprintln(out, text)
		return err
	}
	_, err := fmt.Fprintf(out, "%7d  %-9s  %s  |  %s\n", v.Row, v.Status, shorten(detail(v, now), detailWidth), shorten(plainJSON(v.Input), inputWidth))
	return err
}

// detail is what is most worth knowing about a row.
func detail(v api.Row, now time.Time) string {
	switch {
	case v.Error != nil:
		return clean(v.Error.Error())
	case v.Held != nil:
		return clean(fmt.Sprintf("held by %s until %s: %s", v.Held.Provider, clock(v.Held.Until, now), whyText(v.Held.Why)))
	case v.Waits != nil:
		return clean(waitText(v.Waits, now))
	case len(v.Cells) == 0:
		return "-"
	}
	return plainJSON(v.Cells)
}

func waitText(w *run.WaitView, now time.Time) string {
	until := clock(w.Until, now)
	switch {
	case w.Key == "":
		return fmt.Sprintf("%s: sleeps until %s", w.Column, until)
	case w.Open && !now.Before(w.Until):
		return fmt.Sprintf("%s: waits for the answer to %q, which is overdue since %s", w.Column, w.Key, until)
	}
	return fmt.Sprintf("%s: waits for the answer to %q until %s", w.Column, w.Key, until)
}

// plainJSON writes values on one line, sorted by name.
func plainJSON(values map[string]json.RawMessage) string {
	text, err := marshal(values)
	if err != nil {
		return clean(err.Error())
	}
	return text
}
