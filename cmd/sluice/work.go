package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/internal/core/export"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// work is how a job is brought to its end, and what is told about it.
type work struct {
	endFlags
	out         string // checked; empty: that of the record
	concurrency int
	stateDir    string
	api         string       // of a run of a deployment: the words that name it
	again       bool         // a run that failed is tried again, one that was cancelled goes on
	raise       sheet.Budget // with again: instead of what the map allows
}

// work brings the job to an end: it drives it unless it has ended already, writes its output, tells about it, and
// says with its error how the program exits.
func (a *app) work(i *interruption, st *local.State, job *run.Job, w work) error {
	out := cmp.Or(w.out, job.Run.Out)
	var table early
	if !w.ended(job) {
		var err error
		if job, err = w.goOn(i.ctx, st, job); err != nil {
			return err
		}
		if err := a.drive(i, st, job, w, out, &table); err != nil {
			return a.stopped(job, w, err)
		}
	}
	return a.ended(i, st, job, w, out, table.written)
}

// goOn lets a run go on that somebody has kept from it.
func (w work) goOn(ctx context.Context, st *local.State, job *run.Job) (*run.Job, error) {
	if !w.again && job.Run.Status != sheet.Paused {
		return job, nil
	}
	if _, err := run.Continue(ctx, st.Store, job.Run.ID, w.raise); err != nil {
		return nil, err
	}
	return loadJob(ctx, st, job.Run.ID)
}

// ended writes the output of a run that has ended, unless that is done, and tells about it.
func (a *app) ended(i *interruption, st *local.State, job *run.Job, w work, out string, written bool) error {
	switch job.Run.Status {
	case sheet.Failed:
		return a.conclude(job, w, "", &exit{exitFailed, fmt.Errorf("run %s failed: %s", job.Run.ID, job.Run.Error)})
	case sheet.Cancelled:
		return a.conclude(job, w, "", &exit{exitFailed, errors.New(haltedText(job.Run, w))})
	}
	i.finishing()
	if !written {
		if err := a.export(i.ctx, st, job, out, ""); err != nil {
			return a.conclude(job, w, "", notWritten(job, w, err))
		}
	}
	if w.Quiet {
		a.warn(job.Run)
	} else {
		if err := a.summary(i.ctx, st, job, w, out); err != nil {
			return err
		}
	}
	var result error
	if job.Run.Counts.Failed > 0 {
		result = &exit{code: exitRowsFailed}
	}
	return a.conclude(job, w, out, result)
}

// notWritten is the end of a run that is complete but for its table.
func notWritten(job *run.Job, w work, err error) error {
	again := fmt.Sprintf("to write it: sluice export %s --out FILE%s", job.Run.ID, w.stateArg())
	if errors.Is(err, context.Canceled) {
		// The cancellation itself is not wrapped: the message says more.
		return &exit{exitInterrupted, fmt.Errorf("run %s is complete; its table was not written: interrupted; %s", job.Run.ID, again)}
	}
	return fmt.Errorf("run %s is complete, but its table could not be written: %w; %s", job.Run.ID, err, again)
}

// ended reports whether there is nothing to do. A run that failed may be tried again (the disk has room again), but
// not one that its map ends with the first failed row; one that was cancelled goes on if somebody says so.
func (w work) ended(job *run.Job) bool {
	if w.again && (job.Run.Status == sheet.Failed || job.Run.Status == sheet.Cancelled) {
		return failedFast(job)
	}
	return job.Run.Status.Ended()
}

// failedFast reports whether the run is one that its map ended with the first failed row.
func failedFast(job *run.Job) bool { return job.Map.FailFast && job.Run.Counts.Failed > 0 }

func (a *app) drive(i *interruption, st *local.State, job *run.Job, w work, out string, table *early) error {
	g := st.Gateway(job.Tools, a.secretsSource(), userAgent())
	watch := &run.Watch{}
	d := st.Driver(g, run.Settings{Concurrency: w.concurrency, Stop: i.stop, Watch: watch})
	p := a.progress(st, job, watch, w)
	d.OnPark, d.OnWake = p.parked, p.woken
	table.attach(a, d, st, job, out)
	i.working(p.say)
	p.start()
	defer p.end()
	return d.Drive(i.ctx, job)
}

// stopped tells how a run goes on that was not brought to its end.
func (a *app) stopped(job *run.Job, w work, err error) error {
	switch table := asTableError(err); {
	case table != nil:
		return a.conclude(job, w, "", tableMissing(job, w, table))
	case errors.Is(err, local.ErrHalted):
		return a.conclude(job, w, "", &exit{exitFailed, errors.New(haltedText(job.Run, w))})
	case errors.Is(err, local.ErrStopped):
		return a.conclude(job, w, "", &exit{exitInterrupted, errors.New(parkedText(job, w))})
	case errors.Is(err, context.Canceled):
		return a.conclude(job, w, "", &exit{exitInterrupted, fmt.Errorf("run %s was stopped at once; what was saved stays. To go on: %s", job.Run.ID, w.resume(job))})
	}
	if failedFast(job) {
		return a.conclude(job, w, "", &exit{exitFailed, fmt.Errorf("run %s failed: %w", job.Run.ID, err)})
	}
	return a.conclude(job, w, "", &exit{exitFailed, fmt.Errorf("run %s failed: %w\nwhat was saved stays; to try again: %s", job.Run.ID, err, w.resume(job))})
}

func parkedText(job *run.Job, w work) string {
	text := fmt.Sprintf("run %s is parked: %s of %s rows done, nothing is lost. To go on: %s", job.Run.ID,
		number(job.Run.Counts.Ended()), number(job.Run.Sealed.Rows), w.resume(job))
	if at := job.Run.WakeAt; at.After(time.Now()) {
		what := "row"
		if job.Run.Whole() {
			what = "step of finish"
		}
		text += fmt.Sprintf(" (its next %s is due at %s)", what, clock(at, time.Now()))
	}
	return text
}

// resume is the command that goes on with the run.
func (w work) resume(job *run.Job) string { return w.resumeOf(job.Run.ID) }

func (w work) resumeOf(id string) string { return "sluice resume " + id + w.stateArg() }

// stateArg is what names the place of the run on a command line.
func (w work) stateArg() string {
	if w.stateDir == local.DefaultDir || w.stateDir == "" {
		return w.api
	}
	return " --state " + quoteArg(w.stateDir)
}

// conclude prints the JSON object, whatever became of the run, and passes the error on.
func (a *app) conclude(job *run.Job, w work, out string, err error) error {
	if !w.JSON {
		return err
	}
	text, jsonErr := marshal(newReport(job.Run, out, finishedIn(w.stateDir, job.Run)))
	if jsonErr != nil {
		return errors.Join(err, jsonErr)
	}
	if _, writeErr := fmt.Fprintln(a.stdout, text); writeErr != nil && err == nil {
		err = writeErr
	}
	return err
}

// export writes the table to path; "-" is standard output, empty is nowhere. Without a format the name tells it.
func (a *app) export(ctx context.Context, st *local.State, job *run.Job, path, format string) error {
	if path == "" {
		return nil
	}
	if format == "" {
		var err error
		if format, err = export.FormatOf(path); err != nil {
			return err
		}
	}
	return a.write(path, func(w io.Writer) error { return job.Export(ctx, run.Ports{Store: st.Store}, w, format) })
}

// write writes a table to path, whole or not at all; "-" is standard output.
func (a *app) write(path string, table func(io.Writer) error) error {
	if path == "-" {
		return table(a.screen())
	}
	f, err := export.File(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := table(f); err != nil {
		return err
	}
	return f.Commit()
}

// screen is standard output; where it is a terminal, data cannot command it.
func (a *app) screen() io.Writer {
	if isTerminal(a.stdout) {
		return escapingWriter{a.stdout}
	}
	return a.stdout
}

// escapingWriter escapes control characters other than line ends.
type escapingWriter struct{ w io.Writer }

func (e escapingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(e.w, escape(string(p), "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
