package runmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"sluice/functions/internal/ending"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
)

// FinishResult is how a run has ended.
type FinishResult struct {
	Run       string       `json:"run"`
	Status    sheet.Status `json:"status"`
	Completed int64        `json:"completed"`
	Failed    int64        `json:"failed"`
}

// finish checks the run, writes its table, makes its record say completed, and tells the bus, in this order; whoever
// sees a completed run finds its table.
func (h *Handler) finish(ctx context.Context, id string) (any, error) {
	job, err := run.LoadJob(ctx, h.Store, id)
	if err != nil {
		return nil, named(err)
	}
	if err := ended(job.Run); err != nil {
		return nil, err
	}
	if job.Run.Status == sheet.Staging {
		return nil, &edge.BadRequest{Message: fmt.Sprintf("run %s has not been planned", id)}
	}
	err = job.FinishWith(ctx, h.Store, func(ctx context.Context) error { return h.export(ctx, job) })
	if err != nil {
		return nil, named(err)
	}
	if err := h.Ending.Tell(ctx, job.Run); err != nil {
		return nil, err // finishing again tells it again
	}
	c := job.Run.Counts
	return &FinishResult{Run: id, Status: job.Run.Status, Completed: c.Completed, Failed: c.Failed}, nil
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
