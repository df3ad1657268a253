package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
	"sluice/internal/local"
)

type rowsCmd struct {
	ID     string `arg:"" name:"run" help:"Id of the run."`
	Status string `enum:",completed,failed,held,waiting,pending,cancelled" default:"" help:"Only rows of this status: completed, failed, held, waiting (for an answer, or asleep), pending or cancelled."`
	JSON   bool   `name:"json" help:"Print JSON: one object per line, with input, cells and error of the row."`
	stateFlag
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
	st, err := a.open(ctx, c.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	job, err := loadJob(ctx, st, c.ID)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.stdout)
	if err := c.print(ctx, out, st, job); err != nil {
		return errors.Join(err, out.Flush())
	}
	return out.Flush()
}

func (c *rowsCmd) print(ctx context.Context, out io.Writer, st *local.State, job *run.Job) error {
	if job.Run.Status == sheet.Staging && !c.JSON {
		_, err := fmt.Fprintln(out, "The run's input is still being read.")
		return err
	}
	if !c.JSON {
		fmt.Fprintf(out, "%7s  %-9s  %s\n", "ROW", "STATUS", "CELLS, ERROR OR WAIT  |  INPUT")
	}
	now := time.Now()
	for v, err := range job.Rows(ctx, run.Ports{Store: st.Store}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if c.Status != "" && v.Status != c.Status {
			continue
		}
		if err := c.row(out, v, now); err != nil {
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

func (c *rowsCmd) row(out io.Writer, v *run.RowView, now time.Time) error {
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
func detail(v *run.RowView, now time.Time) string {
	switch {
	case v.Error != nil:
		return clean(v.Error.Error())
	case v.Held != nil:
		return clean(fmt.Sprintf("held by %s until %s", run.ProviderOf(v.Held.Scope), clock(v.Held.Until, now)))
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

func plainJSON(v any) string {
	b, err := value.Encode(v)
	if err != nil {
		return clean(err.Error())
	}
	return jsonSafe(string(b))
}
