// Package wake is what moves runs from outside their machines: events that ask for a run or answer what rows wait for, and
// the schedule on which the reaper looks for runs whose execution died.
package wake

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"sluice/functions/internal/bus"
	"sluice/internal/answers"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// event is EventBridge's envelope, as far as it matters here. The envelope is the platform's and may grow; the detail
// is ours and is read strictly.
type event struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Detail     json.RawMessage `json:"detail"`
}

// Scheduled is the detail type of EventBridge's schedules.
const Scheduled = "Scheduled Event"

// Starter begins runs.
type Starter interface {
	Start(ctx context.Context, req start.Request) (*sheet.Run, error)
}

// Handler answers events. Its fields are set once.
type Handler struct {
	Starter Starter
	Desk    *answers.Desk
	Reaper  *Reaper
	Log     *slog.Logger
}

// Started is what a request for a run comes to.
type Started struct {
	Run    string       `json:"run"`
	Status sheet.Status `json:"status"`
}

// Handle takes one event. An error makes the platform deliver it again and, in the end, puts it into the dead-letter
// queue, where a request that is not valid belongs as well.
func (h *Handler) Handle(ctx context.Context, raw json.RawMessage) (any, error) {
	began := time.Now()
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, &edge.BadRequest{Message: "not an event of EventBridge"}
	}
	log := edge.With(ctx, h.Log)
	res, line, err := h.do(ctx, e)
	line = append(line, slog.String(edge.KeyOp, e.DetailType), slog.Int64(edge.KeyMillis, time.Since(began).Milliseconds()))
	if err != nil {
		err = edge.Named("", err)
		log.Error("event", append(line, slog.String(edge.KeyErrorName, edge.Name(err)), slog.Any(edge.KeyError, err))...)
		return nil, err
	}
	log.Info("event", line...)
	return res, nil
}

func (h *Handler) do(ctx context.Context, e event) (any, []any, error) {
	switch e.DetailType {
	case bus.Requested:
		res, err := h.start(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		return res, []any{slog.String(edge.KeyRun, res.Run), slog.String(edge.KeyStatus, string(res.Status))}, nil
	case bus.Answered:
		res, err := h.answer(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		return res, []any{slog.Int(edge.KeyTaken, res.Taken), slog.Int(edge.KeyAlready, res.Already)}, nil
	case Scheduled:
		report, err := h.Reaper.Reap(ctx)
		return report, []any{slog.Any(edge.KeyReaped, report)}, err
	}
	return nil, nil, &edge.BadRequest{Message: "events of type " + clip(e.DetailType) + " are not for this function; check the rule"}
}

// start begins a run. An event without an id of a run is its own idempotency key, since it may be delivered twice.
func (h *Handler) start(ctx context.Context, e event) (*Started, error) {
	var req start.Request
	if err := edge.Decode(e.Detail, &req); err != nil {
		return nil, err
	}
	if req.Run == "" && e.ID != "" {
		req.Run = start.KeyID("event/" + e.ID)
	}
	rec, err := h.Starter.Start(ctx, req)
	var conflict *start.ConflictError
	var invalid *strict.Error
	if errors.As(err, &conflict) || errors.As(err, &invalid) {
		return nil, &edge.BadRequest{Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &Started{Run: rec.ID, Status: rec.Status}, nil
}

// answer gives rows what they wait for. An answer that nobody can take will not be taken later either.
func (h *Handler) answer(ctx context.Context, e event) (*run.Answered, error) {
	var req answers.Request
	if err := edge.Decode(e.Detail, &req); err != nil {
		return nil, err
	}
	got, err := h.Desk.Answer(ctx, req.Key, req.Value, run.Whose{Run: req.Run})
	if errors.Is(err, run.ErrBadAnswer) || errors.Is(err, run.ErrNobodyWaits) || errors.Is(err, run.ErrTooLate) {
		return nil, &edge.BadRequest{Message: err.Error()}
	}
	return got, err
}

func clip(s string) string {
	const longest = 80
	if len(s) > longest {
		s = s[:longest]
	}
	return `"` + s + `"`
}
