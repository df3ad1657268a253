// Package runmap is what the state machines invoke: it plans a run, works slices of its shards, finishes it, or makes
// its record say that it failed. It owns the messages between the machines and the engine; the work is the engine's
// (internal/core/run).
package runmap

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sluice/functions/internal/ending"
	"sluice/internal/core/call"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/edge"
)

// The operations.
const (
	Plan   = "plan"
	Slice  = "slice"
	Finish = "finish"
	Fail   = "fail"
	Await  = "await"
)

// Request is what a state machine sends.
type Request struct {
	Op     string `json:"op"`
	Run    string `json:"run"`
	Shard  int    `json:"shard"`  // slice, await
	Slices int    `json:"slices"` // slice: how many the execution has had
	Error  string `json:"error"`  // fail
	Cause  string `json:"cause"`  // fail
	Token  string `json:"token"`  // await: gives the machine back to the shard
}

// Handler answers the state machines. Its fields are set once.
type Handler struct {
	Store     *store.Store
	Gateway   func(*run.Job) call.Gateway
	Ending    *ending.Ending
	Bell      Bell
	Resolvers resolver.Set
	Log       *slog.Logger
	Settings  run.Settings
	Usage     func() table.Usage // of the store, by this process; nil: not known
	// Links gives events the addresses at which people answer; nil: they have none.
	Links func(context.Context) (run.Linker, error)
}

// Settings of slices in the cloud, where each write and each batch of calls is billed: they wait for company, and the
// journal is left to expire, because deleting an item costs as much as writing it.
func Settings() run.Settings {
	return run.Settings{Linger: 25 * time.Millisecond, Keep: 48 * time.Hour, Memory: int64(lambdacontext.MemoryLimitInMB)}
}

// Handle does one operation. Its errors are named ones, for the machine's Retry and Catch.
func (h *Handler) Handle(ctx context.Context, raw json.RawMessage) (any, error) {
	began, before := time.Now(), h.usage()
	var req Request
	err := edge.Decode(raw, &req)
	var res any
	if err == nil {
		res, err = h.do(ctx, req)
	}
	err = edge.Named(req.Run, err)
	used := h.usage().Sub(before)
	line := []any{slog.String(edge.KeyOp, req.Op), slog.String(edge.KeyRun, req.Run), slog.Int(edge.KeyShard, req.Shard),
		slog.Int64(edge.KeyMillis, time.Since(began).Milliseconds()),
		slog.Any(edge.KeyWriteUnit, used.WriteUnits), slog.Any(edge.KeyReadUnit, used.ReadUnits)}
	log := edge.With(ctx, h.Log)
	if err != nil {
		log.Error("invocation", append(line, slog.String(edge.KeyErrorName, edge.Name(err)), slog.Any(edge.KeyError, err))...)
		return nil, err
	}
	if s, ok := res.(*SliceResult); ok {
		line = append(line, slog.String(edge.KeyOutcome, s.Outcome), slog.String(edge.KeyWakeAt, s.WakeAt))
	}
	log.Info("invocation", line...)
	return res, nil
}

func (h *Handler) usage() table.Usage {
	if h.Usage == nil {
		return table.Usage{}
	}
	return h.Usage()
}

func (h *Handler) do(ctx context.Context, req Request) (any, error) {
	if req.Run == "" {
		return nil, &edge.BadRequest{Message: "`run` is missing"}
	}
	switch req.Op {
	case Plan:
		return h.plan(ctx, req.Run)
	case Slice:
		return h.slice(ctx, req)
	case Finish:
		return h.finish(ctx, req.Run)
	case Fail:
		return h.fail(ctx, req)
	case Await:
		return h.await(ctx, req)
	}
	return nil, &edge.BadRequest{Message: "`op` must be plan, slice, await, finish or fail"}
}

// named marks errors that trying again cannot help.
func named(err error) error {
	if err != nil && run.Permanent(err) {
		return &edge.RunFailed{Cause: err}
	}
	return err
}

// ended refuses to work on a run that has failed: its machine must end too.
func ended(r *sheet.Run) error {
	if r.Status == sheet.Failed {
		return &edge.RunFailed{Cause: &endedError{r.ID, r.Error}}
	}
	return nil
}

type endedError struct{ run, why string }

func (e *endedError) Error() string { return "run " + e.run + " has failed: " + e.why }
