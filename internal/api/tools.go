package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/call"
	"sluice/internal/strict"
)

// ToolRequest asks for one call. The tool is one of a run's, or of the tool file that is given.
type ToolRequest struct {
	Run       string          `json:"run,omitempty"`
	Tools     string          `json:"tools,omitempty"`     // the tool file's text
	ToolsName string          `json:"toolsName,omitempty"` // for messages; default tools.yaml
	With      json.RawMessage `json:"with,omitempty"`      // the call's input, an object
}

// Called is what became of a call. Where the outcome is `refused` or `held` and nothing was dispatched, it can be asked for
// again from `until` on.
type Called struct {
	Outcome    call.Outcome    `json:"outcome"`
	Value      json.RawMessage `json:"value,omitempty"`
	Error      *call.Error     `json:"error,omitempty"`
	Until      time.Time       `json:"until,omitzero"`
	call.Why                   // with until
	Dispatched bool            `json:"dispatched"` // the request may have reached the provider
	Status     int             `json:"status,omitempty"`
	CostMicros int64           `json:"costMicros"`
}

// callTool answers POST /tools/{name}. The call counts against the provider's limits, and is made once: the request that
// is repeated with the same Idempotency-Key makes it again, under the same fence. Whoever may start runs may make calls.
func (h *Handler) callTool(r *http.Request) (answer, error) {
	var req ToolRequest
	if err := decode(r, &req); err != nil {
		return answer{}, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return answer{}, err
	}
	if (req.Run == "") == (req.Tools == "") {
		return answer{}, strict.Errorf("give either `run`, whose tools are used, or `tools`, the text of a tool file")
	}
	if len(req.With) == 0 {
		req.With = json.RawMessage("{}")
	}
	if req.With[0] != '{' {
		return answer{}, strict.Errorf("`with` must be an object")
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.Tools.Patience())
	defer cancel()
	g, err := h.Tools.Gateway(ctx, req.Run, Catalogue{Name: named(req.ToolsName, "tools.yaml"), Text: req.Tools})
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = g.Close(context.WithoutCancel(ctx)) }() // what it holds of a limit ends by itself
	a, err := one(ctx, g, attempt(r.PathValue("name"), key, req.With))
	if err != nil {
		return answer{}, err
	}
	called := Called{Outcome: a.Outcome, Value: a.Value, Error: a.Error, Until: a.Until, Dispatched: a.Dispatched, Status: a.Status, CostMicros: a.CostMicros}
	if !a.Until.IsZero() { // else it is the provider's scope that waits, and not this call
		called.Why = a.Why
	}
	return ok(called)
}

func named(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// attempt is the call that a key names; without a key it is a new one.
func attempt(tool, key string, with json.RawMessage) call.Attempt {
	if key == "" {
		key = ulid.Make().String()
	}
	id := call.ID("tools/" + key)
	return call.Attempt{Tool: tool, Input: with, RequestID: id.Request(0), Fence: id.Fence()}
}

// one makes the call. The wait for its answer ends with ctx, whoever makes it.
func one(ctx context.Context, g call.Gateway, a call.Attempt) (call.Answer, error) {
	type outcome struct {
		answer call.Answer
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var got outcome
		got.err = g.Execute(ctx, []call.Attempt{a}, func(_ int, answer call.Answer) { got.answer = answer })
		done <- got
	}()
	select {
	case got := <-done:
		if got.err == nil || ctx.Err() == nil {
			return got.answer, got.err
		}
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return call.Answer{}, ctx.Err() // nobody listens any more
	}
	return call.Answer{}, problem(http.StatusGatewayTimeout, NoAnswer, "there was no answer in time; the call of %s may have been made", clip(a.Tool))
}
