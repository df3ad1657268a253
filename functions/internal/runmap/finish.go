package runmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"sluice/functions/internal/ending"
	"sluice/functions/internal/steer"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
)

// FinishResult is how a run has ended, or that it has not yet: steps of the map's `finish` may have to wait.
type FinishResult struct {
	Run       string       `json:"run"`
	Status    sheet.Status `json:"status"`
	Completed int64        `json:"completed"`
	Failed    int64        `json:"failed"`
	Outcome   string       `json:"outcome"` // done, more or parked
	WakeAt    string       `json:"wakeAt"`  // UTC, whole seconds, rounded up; now unless parked
}

// After patience slices of the steps of `finish`, the next one comes after calmWait at the earliest: a step that waits for
// short moments, again and again, shall not fill the history of the run's execution, which Step Functions ends at 25,000
// events. A visit makes 9. A provider that never says yes is given up after half an hour (R5), so that the 20 steps that a
// map may have come to fewer than 700 visits after that.
const (
	patience = 1500
	calmWait = time.Minute
)

// finish checks the run, writes its table, makes the steps of `finish`, makes the record say completed, and tells the
// bus, in this order; whoever sees a completed run finds its table.
func (h *Handler) finish(ctx context.Context, id string) (any, error) {
	job, err := run.LoadJob(ctx, h.Store, id)
	if err != nil {
		return nil, named(err)
	}
	if err := ended(job.Run); err != nil {
		return nil, err
	}
	if rec, halted, err := h.halted(ctx, job); halted || err != nil {
		if err != nil {
			return nil, err
		}
		return h.finished(ctx, rec, run.Result{Outcome: run.Done}) // the machine has nothing more to do
	}
	if job.Run.Status == sheet.Staging {
		return nil, &edge.BadRequest{Message: fmt.Sprintf("run %s has not been planned", id)}
	}
	set := h.Settings
	set.Deadline = edge.Deadline(ctx)
	res, err := job.Finish(ctx, h.ports(ctx, job), set, func(ctx context.Context) error { return h.export(ctx, job) })
	if errors.Is(err, run.ErrLost) { // another invocation makes the steps: look again when its lease is over
		res, err = h.lost(ctx, sheet.Part{ID: job.Run.FinishID()})
	}
	if err != nil {
		return nil, named(err)
	}
	switch res.Outcome {
	case run.Paused, run.Cancelled: // as above
		rec, err := steer.Settled(ctx, h.ports(ctx, job), set, h.Ending, id)
		if err != nil {
			return nil, err
		}
		return h.finished(ctx, rec, run.Result{Outcome: run.Done})
	case run.Done:
		if err := h.Ending.Tell(ctx, job.Run); err != nil {
			return nil, err // finishing again tells it again
		}
	}
	return h.finished(ctx, job.Run, res)
}

// halted reports whether the machine has come to its end without the run having come to its own: somebody has cancelled or
// paused it, or it goes on in another execution already.
func (h *Handler) halted(ctx context.Context, job *run.Job) (*sheet.Run, bool, error) {
	asked, err := sheet.LoadControl(ctx, h.Store, job.Run.ID)
	switch {
	case err != nil || job.Run.Status == sheet.Completed:
		return nil, false, err
	case asked.Halts(), job.Run.Status == sheet.Paused, job.Run.Status == sheet.Cancelled:
		rec, err := steer.Settled(ctx, h.ports(ctx, job), h.Settings, h.Ending, job.Run.ID)
		return rec, true, err
	case job.Run.Continued == 0:
		return nil, false, nil
	}
	left, err := job.Unfinished(ctx, h.Store)
	return job.Run, len(left) > 0, err
}

func (h *Handler) finished(ctx context.Context, r *sheet.Run, res run.Result) (any, error) {
	c := r.Counts
	out := &FinishResult{Run: r.ID, Status: r.Status, Completed: c.Completed, Failed: c.Failed}
	out.Outcome, out.WakeAt = told(res)
	if res.Outcome != run.Parked {
		return out, nil
	}
	cp, err := sheet.LoadCheckpoint(ctx, h.Store, r.FinishID(), 0)
	if calm := time.Now().Add(calmWait); err == nil && cp.Stats.Slices > patience && res.WakeAt.Before(calm) {
		out.WakeAt = stamp(calm)
	}
	return out, err
}

// export streams the table into the bucket: its size is not bounded by the function's memory.
func (h *Handler) export(ctx context.Context, job *run.Job) error {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(job.Export(ctx, run.Ports{Store: h.Store}, w, "csv"))
	}()
	err := h.Store.Blobs.Put(ctx, ending.Export(job.Run.ID), r)
	r.CloseWithError(errors.Join(errors.New("the object was not written"), err))
	<-done
	if err != nil {
		return fmt.Errorf("export of run %s: %w", job.Run.ID, err)
	}
	return nil
}

// FailResult is how the run stands after fail.
type FailResult struct {
	Run    string       `json:"run"`
	Status sheet.Status `json:"status"`
}

// fail makes the record say that the run failed, and why. A run that has ended stays as it ended: the first reason is
// the right one.
func (h *Handler) fail(ctx context.Context, req Request) (any, error) {
	rec, err := h.Ending.Fail(ctx, req.Run, reason(req.Error, req.Cause))
	if err != nil {
		return nil, err
	}
	if err := h.Ending.Tell(ctx, rec); err != nil {
		// The record is true, which is what this must always come to; the reaper tells it again.
		edge.With(ctx, h.Log).Warn("end not told", slog.String(edge.KeyRun, req.Run), slog.Any(edge.KeyError, err))
	}
	return &FailResult{Run: req.Run, Status: rec.Status}, nil
}
