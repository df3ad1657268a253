package api

import (
	"context"
	"encoding/json"
	"net/http"

	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// cancelRun answers POST /runs/{id}/cancel: 202, also for a run that is cancelled already.
func (h *Handler) cancelRun(r *http.Request) (answer, error) {
	if err := decodeIfAny(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	id := r.PathValue("id")
	return h.asked(r.Context(), id, run.Cancel(r.Context(), h.Store, id))
}

// PauseRequest asks a run to pause.
type PauseRequest struct {
	Reason string `json:"reason,omitempty"` // told where the run is shown
}

// maxReason bounds what a pause may say, in bytes.
const maxReason = 1000

// pauseRun answers POST /runs/{id}/pause.
func (h *Handler) pauseRun(r *http.Request) (answer, error) {
	var req PauseRequest
	if err := decodeIfAny(r, &req); err != nil {
		return answer{}, err
	}
	if len(req.Reason) > maxReason {
		return answer{}, strict.Errorf("`reason` has %d bytes; at most %d are possible", len(req.Reason), maxReason)
	}
	id := r.PathValue("id")
	return h.asked(r.Context(), id, run.Pause(r.Context(), h.Store, id, req.Reason))
}

// ResumeRequest lets a run go on.
type ResumeRequest struct {
	Budget *Budget `json:"budget,omitempty"` // instead of the map's
}

// Budget bounds what a run may spend.
type Budget struct {
	Calls int64   `json:"calls,omitempty"`
	Cost  float64 `json:"cost,omitempty"` // in the money unit of the tools' costs
}

// resumeRun answers POST /runs/{id}/resume.
func (h *Handler) resumeRun(r *http.Request) (answer, error) {
	var req ResumeRequest
	if err := decodeIfAny(r, &req); err != nil {
		return answer{}, err
	}
	var raise sheet.Budget
	if b := req.Budget; b != nil {
		const millionths = 1e6
		const most = 1e12
		if b.Calls < 0 || b.Cost < 0 || b.Cost > most || b.Calls == 0 && b.Cost == 0 {
			return answer{}, strict.Errorf("`budget` needs `calls` or `cost`, a positive number")
		}
		raise = sheet.Budget{Calls: b.Calls, CostMicros: int64(b.Cost*millionths + 0.5)}
	}
	id := r.PathValue("id")
	// The list of active runs first: whoever dies after the record says that the run goes on must leave it there.
	_, err := sheet.Load(r.Context(), h.Store, id)
	if err == nil {
		err = active.Add(r.Context(), h.Store.Table, id)
	}
	if err == nil {
		_, err = run.Continue(r.Context(), h.Store, id, raise)
	}
	return h.asked(r.Context(), id, err)
}

// RetryRequest asks for the failed rows of a run to be run again.
type RetryRequest struct {
	// Unknown says what is done with rows of which nobody knows whether their call was executed (OUTCOME_UNKNOWN): repeat or
	// accept; empty: they stay as they are.
	Unknown run.Unknown     `json:"unknown,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // with accept: what the column takes; default null
}

// retryRun answers POST /runs/{id}/retry.
func (h *Handler) retryRun(r *http.Request) (answer, error) {
	var req RetryRequest
	if err := decodeIfAny(r, &req); err != nil {
		return answer{}, err
	}
	switch {
	case req.Unknown != run.LeaveUnknown && req.Unknown != run.RepeatUnknown && req.Unknown != run.AcceptUnknown:
		return answer{}, strict.Errorf("`unknown` must be %q or %q", run.RepeatUnknown, run.AcceptUnknown)
	case req.Value != nil && req.Unknown != run.AcceptUnknown:
		return answer{}, strict.Errorf("`value` is for `unknown: accept`")
	}
	if req.Value != nil {
		if _, err := value.Decode(req.Value); err != nil {
			return answer{}, strict.Errorf("`value`: %v", err)
		}
	}
	id := r.PathValue("id")
	_, err := run.AskRetry(r.Context(), h.Store, id, run.RetryOptions{Unknown: req.Unknown, Value: req.Value})
	return h.asked(r.Context(), id, err)
}

// extendRun answers POST /runs/{id}/extend: 202 for an extension that is on its way, however often it is asked for.
func (h *Handler) extendRun(r *http.Request) (answer, error) {
	var req start.Extension
	if err := decode(r, &req); err != nil {
		return answer{}, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return answer{}, err
	}
	id := r.PathValue("id")
	_, err = h.Starter.Extend(r.Context(), id, key, req)
	return h.asked(r.Context(), id, err)
}

// asked makes those who work on the run hear what was written down, and tells how it stands.
func (h *Handler) asked(ctx context.Context, id string, err error) (answer, error) {
	if err == nil {
		err = h.Kicker.Kick(ctx, id)
	}
	if err != nil {
		return answer{}, err
	}
	rec, err := sheet.Load(ctx, h.Store, id)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: Standing{rec.ID, rec.Status}}, nil
}
