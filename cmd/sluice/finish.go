package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sluice/internal/api"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// finished is a step of the map's `finish`, as it is shown.
type finished struct {
	sheet.FinishStep
	At string `json:"at,omitempty"` // of what was published: its file, or its address
}

// finishedIn are the steps of a run of a state folder.
func finishedIn(dir string, r *sheet.Run) []finished {
	steps := make([]finished, len(r.Finish))
	for i, s := range r.Finish {
		steps[i].FinishStep = s
		if s.Publish != "" && s.Error == nil {
			steps[i].At = absolute(local.PublishedPath(dir, r.ID, s.Publish))
		}
	}
	return steps
}

// finished are the steps of a run of a deployment.
func (d deployment) finished(steps []api.Step) []finished {
	list := make([]finished, len(steps))
	for i, s := range steps {
		list[i].FinishStep = s.FinishStep
		switch {
		case s.Link == nil:
		case strings.Contains(s.Link.URL, "://"):
			list[i].At = s.Link.URL
		default: // relative to where the API is
			list[i].At = strings.TrimSuffix(d.URL(), "/") + "/" + s.Link.URL
		}
	}
	return list
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// text says what became of a step.
func (f finished) text() string {
	switch {
	case f.Error != nil && f.Publish != "":
		return fmt.Sprintf("%s could not be published: %v", f.Publish, f.Error)
	case f.Error != nil:
		return fmt.Sprintf("%s failed: %v", f.Call, f.Error)
	case f.Publish != "":
		return fmt.Sprintf("%s published (%s): %s", f.Publish, plural(int64(f.Size), "byte", "bytes"), f.At)
	case len(f.Result) > 0:
		return fmt.Sprintf("%s called: %s", f.Call, f.Result)
	}
	return f.Call + " called"
}

// writeFinish lists the steps in a summary.
func writeFinish(b *strings.Builder, steps []finished) {
	for i, s := range steps {
		label := ""
		if i == 0 {
			label = "finish"
		}
		fmt.Fprintf(b, "  %-10s  %s\n", label, shorten(clean(s.text()), 300))
	}
}

// warn tells what went wrong at the end of a run, where there is no summary that says it.
func (a *app) warn(r *sheet.Run) {
	for _, warning := range r.Warnings() {
		fmt.Fprintf(a.stderr, "run %s: %s\n", r.ID, clean(warning))
	}
}

// early writes the table of a run before the steps of its map's `finish` are made: what they tell is true then.
type early struct{ written bool }

func (e *early) attach(a *app, d *local.Driver, st *local.State, job *run.Job, out string) {
	if len(job.Map.Finish) == 0 || out == "" {
		return
	}
	d.Table = func(ctx context.Context) error {
		err := a.export(ctx, st, job, out, "")
		e.written = err == nil
		return err
	}
}

// tableMissing is the end of a process whose run has come to its end but for its table, and for what is done after that.
func tableMissing(job *run.Job, w work, err *local.TableError) error {
	return &exit{exitFailed, fmt.Errorf("run %s: every row has ended, but %w\nto write it, and to make the steps of finish: %s --out FILE",
		job.Run.ID, err, w.resume(job))}
}

func asTableError(err error) *local.TableError {
	var table *local.TableError
	if errors.As(err, &table) && !errors.Is(err, context.Canceled) {
		return table
	}
	return nil
}
