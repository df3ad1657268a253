package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"sluice/internal/active"
	"sluice/internal/answers"
	"sluice/internal/core/link"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
	"sluice/internal/local"
)

// work plans the run, if it is new, and drives it.
func (r *Runner) work(id string) (*sheet.Run, error) {
	claim, err := r.State.Claim(id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = claim.Release() }() // the end of the process releases it too
	st := r.State.Session()
	st.Trace = edge.Retried(r.Log)
	defer func() {
		if err := st.Close(); err != nil {
			r.Log.Warn("leases not given back", slog.String(edge.KeyRun, id), slog.Any(edge.KeyError, err))
		}
	}()
	job, err := r.plan(st, id)
	if err != nil {
		return nil, err
	}
	asked, err := sheet.LoadControl(r.ctx, st.Store, id)
	if err != nil {
		return job.Run, err
	}
	switch goes := goesOn(job.Run, asked); {
	case !goes && !job.Run.Status.Ended():
		return job.Run, local.ErrHalted
	case goes:
		set := run.Settings{Stop: r.stop}
		if r.URL != "" {
			secret, err := link.Load(r.ctx, st.Store)
			if err != nil {
				return job.Run, err
			}
			set.Link = answers.Links(secret, r.URL)
		}
		d := st.Driver(st.Gateway(job.Tools, r.Secrets, r.UserAgent), set)
		if err := d.Drive(r.ctx, job); err != nil && !job.Run.Status.Ended() {
			return job.Run, err
		}
	}
	if !job.Run.Status.Ended() {
		return job.Run, nil
	}
	return job.Run, active.Ended(context.WithoutCancel(r.ctx), st.Store, job.Run)
}

// plan seals the run's input, or what it is extended by, unless the run was cancelled before. An input that cannot be sealed ends
// the run; an extension that cannot leaves it as it was.
func (r *Runner) plan(st *local.State, id string) (*run.Job, error) {
	if err := run.AskedRetry(r.ctx, st.Ports(), run.Settings{}, id); err != nil {
		return nil, err
	}
	if err := run.AskedExtend(r.ctx, st.Store, id); err != nil {
		return nil, err
	}
	rec, err := sheet.Load(r.ctx, st.Store, id)
	if err == nil && rec.Status == sheet.Staging {
		rec, err = run.Settle(r.ctx, st.Ports(), run.Settings{}, id)
	}
	if err != nil {
		return nil, err
	}
	if rec.Status.Ended() {
		return &run.Job{Run: rec}, nil
	}
	job, err := run.Plan(r.ctx, st.Store, id)
	if err == nil || !run.Permanent(err) {
		return job, err
	}
	failed := &run.Job{Run: rec}
	if failErr := failed.Fail(context.WithoutCancel(r.ctx), st.Store, err); failErr != nil {
		return nil, fmt.Errorf("run %s: %w", id, errors.Join(err, failErr))
	}
	return failed, nil
}
