package runmap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/functions/internal/steer"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/edge"
)

// SliceResult is what a slice tells its machine.
type SliceResult struct {
	Run      string `json:"run"`
	Shard    int    `json:"shard"`
	Outcome  string `json:"outcome"`          // done, more, parked, awaiting; paused or cancelled: no slice follows
	WakeAt   string `json:"wakeAt"`           // UTC, whole seconds, rounded up; now unless parked
	Within   string `json:"within,omitempty"` // awaiting: how long a token may be waited for
	Slices   int    `json:"slices"`
	Rollover bool   `json:"rollover"` // the execution's history is nearly full: go on in a new one
}

// RolloverAfter slices an execution is followed by a new one. Step Functions ends an execution at 25,000 history events
// (Service quotas, "Maximum execution history size"); a slice with its Choice and its Wait makes 9 events, with its two Choices
// and its token 15, and three more for every time that it is retried.
const RolloverAfter = 1300

func (h *Handler) slice(ctx context.Context, req Request) (any, error) {
	job, err := run.LoadJob(ctx, h.Store, req.Run)
	if err != nil {
		return nil, named(err)
	}
	if err := ended(job.Run); err != nil {
		return nil, err
	}
	switch {
	case job.Run.Status == sheet.Staging:
		return nil, &edge.BadRequest{Message: fmt.Sprintf("run %s has not been planned", req.Run)}
	case req.Shard < 0 || req.Shard >= job.Run.Shards || req.Slices < 0:
		return nil, &edge.BadRequest{Message: fmt.Sprintf("run %s has shards 0 to %d, and `slices` counts up from 0", req.Run, job.Run.Shards-1)}
	case job.Run.Status == sheet.Completed:
		return answer(req, run.Result{Outcome: run.Done}), nil
	case job.Run.Status == sheet.Cancelled:
		return answer(req, run.Result{Outcome: run.Cancelled}), nil
	case job.Run.Status == sheet.Paused:
		return answer(req, run.Result{Outcome: run.Paused}), nil
	}
	set := h.Settings
	set.Deadline = edge.Deadline(ctx)
	if set.Link, err = h.link(ctx, job); err != nil {
		return nil, err
	}
	res, err := job.Slice(ctx, h.ports(ctx, job), req.Shard, set)
	if errors.Is(err, run.ErrLost) { // another slice works on the shard: leave, and look again
		if res, err = h.lost(ctx, sheet.Part{ID: req.Run, Shard: req.Shard}); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, named(err)
	}
	if res.Outcome == run.Cancelled || res.Outcome == run.Paused { // the last shard makes the record say so
		if _, err := steer.Settled(ctx, h.ports(ctx, job), h.Settings, h.Ending, req.Run); err != nil {
			return nil, err
		}
	}
	h.tellPark(ctx, req.Run, req.Shard, res)
	return answer(req, res), nil
}

// link is what maps with events need.
func (h *Handler) link(ctx context.Context, job *run.Job) (run.Linker, error) {
	asks := slices.ContainsFunc(job.Map.Columns, func(c mapspec.Column) bool { return c.Event != nil })
	if h.Links == nil || !asks {
		return nil, nil
	}
	return h.Links(ctx)
}

func (h *Handler) ports(ctx context.Context, job *run.Job) run.Ports {
	return run.Ports{
		Store: h.Store, Gateway: h.Gateway(job), Log: edge.With(ctx, h.Log), Resolvers: h.Resolvers,
		// Not the invocation's own id: a platform may deliver one invocation twice.
		Owner: strings.ToLower(ulid.Make().String()),
	}
}

// lost is the result of a slice whose part of the run another one has taken.
func (h *Handler) lost(ctx context.Context, part sheet.Part) (run.Result, error) {
	res := run.Result{Outcome: run.Busy}
	cp, err := sheet.LoadCheckpoint(ctx, h.Store, part.ID, part.Shard)
	if errors.Is(err, table.ErrNotFound) {
		return res, nil
	}
	if err == nil {
		res.WakeAt = cp.LookAgain(time.Now())
	}
	return res, err
}

func answer(req Request, r run.Result) *SliceResult {
	out := &SliceResult{Run: req.Run, Shard: req.Shard, Slices: req.Slices + 1}
	out.Outcome, out.WakeAt = told(r)
	if r.Outcome == run.Awaiting {
		if out.Within = within(r.WakeAt, time.Now()); out.Within == "" {
			out.Outcome, out.WakeAt = string(run.Parked), stamp(r.WakeAt)
		}
	}
	over := r.Outcome == run.Done || r.Outcome == run.Cancelled || r.Outcome == run.Paused
	out.Rollover = out.Slices >= RolloverAfter && !over
	return out
}

// told is an outcome in the words of the machines, and when to come again.
func told(r run.Result) (outcome, wakeAt string) {
	now := time.Now()
	switch r.Outcome {
	case run.Parked:
		return string(run.Parked), stamp(r.WakeAt)
	case run.Busy: // the lease is renewed while its owner lives, and never long
		return string(run.Parked), stamp(clamp(r.WakeAt, now.Add(time.Second), now.Add(run.Lease)))
	}
	return string(r.Outcome), stamp(now)
}

func clamp(t, least, most time.Time) time.Time {
	if t.Before(least) {
		return least
	}
	if t.After(most) {
		return most
	}
	return t
}

// stamp is a time as Wait states of every make read it.
func stamp(t time.Time) string {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole.Format("2006-01-02T15:04:05Z")
}
