package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/export"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// The commands that work on runs do it here for runs of a deployment: what a laptop does itself, the deployment is asked for,
// and what it says is shown in the same way.

// follow watches a run of a deployment to its end, writes its output, tells about it, and says with its error how the program
// exits. Ctrl-C ends the watching; the run goes on.
func (a *app) follow(i *interruption, d deployment, id string, w work) error {
	p := a.watching(w)
	v, err := d.await(i.ctx, id, p)
	p.close()
	if err != nil {
		return a.unwatched(d, id, w, err)
	}
	r := recordOf(v)
	switch v.Status {
	case sheet.Failed:
		return a.concludeRemote(d, v, w, "", &exit{exitFailed, fmt.Errorf("run %s failed: %s", id, v.Error)})
	case sheet.Cancelled, sheet.Paused:
		return a.concludeRemote(d, v, w, "", &exit{exitFailed, errors.New(haltedText(r, w))})
	}
	if err := a.fetch(i.ctx, d, id, w.out, ""); err != nil {
		return a.concludeRemote(d, v, w, "", notWritten(&run.Job{Run: r}, w, err))
	}
	if w.Quiet {
		a.warn(r)
	} else if err := a.remoteSummary(i.ctx, d, v, w); err != nil {
		return err
	}
	var result error
	if v.Failed > 0 {
		result = &exit{code: exitRowsFailed}
	}
	return a.concludeRemote(d, v, w, w.out, result)
}

// unwatched says why the watching ended before the run did.
func (a *app) unwatched(d deployment, id string, w work, err error) error {
	if errors.Is(err, context.Canceled) {
		return &exit{exitInterrupted, fmt.Errorf("run %s goes on at %s. To watch it: sluice resume %s%s; to stop it: sluice cancel %s%s", id, d.URL(),
			id, w.stateArg(), id, w.stateArg())}
	}
	return d.named(err, id)
}

func (a *app) concludeRemote(d deployment, v api.View, w work, out string, err error) error {
	if !w.JSON {
		return err
	}
	rep := newReport(recordOf(v), out, d.finished(v.Finish))
	rep.Warnings = v.Warnings
	if printErr := a.printJSON(rep); printErr != nil && err == nil {
		err = printErr
	}
	return err
}

// fetch writes a deployment's table to path, as export does.
func (a *app) fetch(ctx context.Context, d deployment, id, path, format string) error {
	if path == "" {
		return nil
	}
	if format == "" {
		var err error
		if format, err = export.FormatOf(path); err != nil {
			return err
		}
	}
	table, err := d.Export(ctx, id, format)
	if err != nil {
		return d.named(err, id)
	}
	defer table.Close()
	return a.write(path, func(w io.Writer) error {
		if _, err := io.Copy(w, table); err != nil {
			return fmt.Errorf("the table did not come whole: %w", err)
		}
		return nil
	})
}

// remoteSummary tells people on standard error what a run came to.
func (a *app) remoteSummary(ctx context.Context, d deployment, v api.View, w work) error {
	var b strings.Builder
	writeSummary(&b, recordOf(v))
	if v.Bill != nil && v.Bill.Note == "" {
		fmt.Fprintf(&b, "  aws         %.4f dollars at list prices, %.2f per million rows; sluice runs %s --cost%s\n", v.Bill.Total, v.Bill.PerMillion, v.Run, w.stateArg())
	}
	if v.Failed > 0 {
		if err := writeErrors(&b, d.faults(ctx, v.Run)); err != nil {
			return err
		}
		fmt.Fprintf(&b, "  list them   sluice rows %s --status failed%s\n", v.Run, w.stateArg())
	}
	writeFinish(&b, d.finished(v.Finish))
	writeOutput(&b, v.Run, w, w.out)
	_, err := fmt.Fprint(a.stderr, b.String())
	return err
}

// manyFaults is how many failed rows a summary looks at; a deployment may have millions.
const manyFaults = 10_000

func (d deployment) faults(ctx context.Context, id string) iter.Seq2[*sheet.Fault, error] {
	return func(yield func(*sheet.Fault, error) bool) {
		seen := 0
		for row, err := range d.Rows(ctx, id, run.StatusFailed) {
			if !yield(row.Error, err) || err != nil {
				return
			}
			if seen++; seen == manyFaults {
				return
			}
		}
	}
}

// How often a deployment is asked how a run stands: soon at first, because many runs are short; and while it does not answer.
const (
	askFirst   = 100 * time.Millisecond
	askEvery   = 2 * time.Second
	askParked  = 5 * time.Second
	askLongest = time.Minute
)

// await asks how the run stands until there is nothing to wait for, and shows it.
func (d deployment) await(ctx context.Context, id string, p *watching) (api.View, error) {
	return d.awaitUntil(ctx, id, p, func(v api.View) bool {
		return v.Asked != "extend" && v.Status.Ended() || v.Status == sheet.Paused && v.Asked == ""
	})
}

// awaitUntil asks how the run stands until it stands so. A deployment that does not answer is asked again, for as long as somebody
// waits: the run goes on meanwhile.
func (d deployment) awaitUntil(ctx context.Context, id string, p *watching, so func(api.View) bool) (api.View, error) {
	silent := time.Duration(0)
	for {
		v, err := d.Run(ctx, id)
		switch {
		case err == nil && so(v):
			return v, nil
		case err == nil:
			silent = 0
			p.show(v, time.Now())
		case !client.Passing(err) || ctx.Err() != nil:
			return v, err
		case silent == 0:
			silent = askEvery
			p.say(fmt.Sprintf("sluice: %s; the run goes on there, and is asked for again", cleanLines(err.Error())))
		default:
			silent = min(2*silent, askLongest)
		}
		select {
		case <-time.After(cmp.Or(silent, p.pause(v))):
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// watching shows how a run of a deployment stands.
type watching struct {
	teller
	speed speed
	next  time.Duration
}

func (a *app) watching(w work) *watching {
	switch {
	case w.Quiet:
		return &watching{teller: silent{a.stderr}}
	case isTerminal(a.stderr):
		return &watching{teller: newDisplay(a.stderr, 0)}
	}
	return &watching{teller: &lines{w: a.stderr}}
}

// pause is how long to wait before the deployment is asked again.
func (p *watching) pause(v api.View) time.Duration {
	p.next = min(max(2*p.next, askFirst), askEvery)
	if v.Status == sheet.Parked && p.next == askEvery {
		return askParked
	}
	return p.next
}

func (p *watching) show(v api.View, now time.Time) {
	s := standing{Total: v.Rows, Done: v.Completed, Failed: v.Failed, Cost: v.Stats.CostMicros, Ending: !v.WholeAt.IsZero(), Halting: haltingWord(v.Asked)}
	if v.Waits != nil {
		s.Answers, s.Asleep = v.Waits.Answers, v.Waits.Asleep
	}
	for _, h := range v.Holds {
		s.Held += h.Rows
		if h.Until.Sub(now) >= longHold {
			s.Holds = append(s.Holds, holdOf(h))
		}
	}
	if v.Status == sheet.Parked {
		s.Parked, s.ParkedUntil, p.speed = true, v.WakeAt, speed{}
	} else {
		p.speed.note(now, v.Completed+v.Failed)
		s.Rate = p.speed.rate()
		s.Left = s.estimate(now)
	}
	p.teller.show(s, now)
}
