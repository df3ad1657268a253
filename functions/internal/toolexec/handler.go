// Package toolexec executes the calls of runs: the only place in the cloud that sees the secrets of providers. It owns
// the catalogues of the runs that it serves and the bounds of one invocation; what an attempt comes to is the
// executor's business (internal/core/gateway).
package toolexec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/oklog/ulid/v2"

	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/edge"
	"sluice/internal/invoke"
)

// Handler answers invocations of toolexec. Its fields are set once.
type Handler struct {
	Catalogues Catalogues
	Pacer      *pacer.Pacer // of this process
	Sender     gateway.Sender
	Secrets    gateway.Secrets
	Blobs      blob.Store
	Log        *slog.Logger
	MaxPayload int                // of a response, in bytes; 0: invoke.MaxPayload
	Usage      func() table.Usage // of the store, by this process; nil: not known
	Bodies     *gateway.Bodies    // of this process; nil: of each executor's own

	mu        sync.Mutex
	executors map[string]*gateway.Executor // by the catalogue's digest: runs of one catalogue share credentials
}

// unsaid is how long an attempt waits that was not made because the store of the pacer gave no answer.
const unsaid = time.Second

// closeTime bounds what the end of an invocation waits for while it gives back leases; others get them when they
// expire.
const closeTime = 2 * time.Second

// Handle executes the attempts of one invocation. Its errors are named, and come before anything is dispatched.
func (h *Handler) Handle(ctx context.Context, raw json.RawMessage) (*invoke.Response, error) {
	began, before := time.Now(), h.usage()
	var req invoke.Request
	if err := edge.Decode(raw, &req); err != nil {
		return nil, err
	}
	if (req.Run == "") == (req.Tools == nil) || len(req.Attempts) == 0 {
		return nil, &edge.BadRequest{Message: "the request needs `run` or `tools`, and `attempts`"}
	}
	if req.Permits > invoke.PermitsChecked {
		return nil, &edge.BadRequest{Message: fmt.Sprintf("this deployment cannot validate permits as version %d asks", req.Permits)}
	}
	e, err := h.executor(ctx, req)
	if err != nil {
		return nil, edge.Named(req.Run, err)
	}
	bodies := e.BodyUse()
	answers := h.execute(ctx, e, req)
	res, err := h.respond(ctx, req.Run, answers)
	if res != nil {
		res.Usage, res.Bodies = h.usage().Sub(before), e.BodyUse().Since(bodies)
	}
	millis := time.Since(began).Milliseconds()
	if res != nil {
		res.Billed = call.Billed{Millis: millis + 1, MemoryMB: int64(lambdacontext.MemoryLimitInMB)} // begun ones are billed
	}
	edge.With(ctx, h.Log).Info("calls", slog.String(edge.KeyRun, req.Run), slog.Int(edge.KeyAttempts, len(req.Attempts)),
		slog.Any("outcomes", tally(answers)), slog.Int64(edge.KeyMillis, millis))
	return res, err
}

func (h *Handler) usage() table.Usage {
	if h.Usage == nil {
		return table.Usage{}
	}
	return h.Usage()
}

// executor returns the executor of the run's catalogue, or of the one that is given.
func (h *Handler) executor(ctx context.Context, req invoke.Request) (*gateway.Executor, error) {
	c, err := h.catalogue(ctx, req)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.executors[c.Digest]; e != nil {
		return e, nil
	}
	if h.executors == nil || len(h.executors) >= maxCatalogues {
		h.executors = map[string]*gateway.Executor{}
	}
	e := gateway.New(gateway.Config{Catalogue: c, Pacer: h.Pacer, Sender: h.Sender, Secrets: h.Secrets, Bodies: h.Bodies,
		Trace: edge.Retried(h.Log)})
	h.executors[c.Digest] = e
	return e, nil
}

func (h *Handler) catalogue(ctx context.Context, req invoke.Request) (*mapspec.Catalogue, error) {
	if req.Tools == nil {
		return h.Catalogues.Of(ctx, req.Run)
	}
	c, err := mapspec.ParseTools(req.Tools.Name, []byte(req.Tools.Text))
	if err != nil {
		return nil, &edge.BadRequest{Message: err.Error()}
	}
	return c, nil
}

// execute runs the batch until shortly before the invocation's end: an exchange that is cut off by us is an answer, one
// that is cut off by the platform is a riddle.
func (h *Handler) execute(ctx context.Context, e *gateway.Executor, req invoke.Request) []call.Answer {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if at := edge.Deadline(ctx); !at.IsZero() {
		bounded, cancel = context.WithDeadline(ctx, at)
	}
	defer cancel()
	answers, answered := make([]call.Answer, len(req.Attempts)), make([]bool, len(req.Attempts))
	var mu sync.Mutex
	err := e.Execute(bounded, req.Attempts, func(i int, a call.Answer) {
		mu.Lock()
		defer mu.Unlock()
		answers[i], answered[i] = a, true
	})
	mu.Lock()
	defer mu.Unlock()
	for i := range answers {
		if !answered[i] { // provably not dispatched
			until := time.Now().Add(unsaid)
			answers[i] = call.Answer{Outcome: call.Refused, Until: until, NextFree: until}
		}
	}
	leave, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer done()
	log := edge.With(ctx, h.Log)
	if err != nil {
		log.Warn("calls not made", slog.String(edge.KeyRun, req.Run), slog.Any(edge.KeyError, err))
	}
	if err := e.Close(leave); err != nil { // the scope's item is fought for; the next invocation tries again
		log.Warn("concurrency not given back, others have to wait for it", slog.String(edge.KeyRun, req.Run), slog.Any(edge.KeyError, err))
	}
	return answers
}

// respond puts answers that would not fit into the blob store. What was paid for must not be lost to a limit.
func (h *Handler) respond(ctx context.Context, run string, answers []call.Answer) (*invoke.Response, error) {
	b, err := json.Marshal(answers)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	most := h.MaxPayload
	if most <= 0 {
		most = invoke.MaxPayload
	}
	if len(b) <= most {
		return &invoke.Response{Answers: answers}, nil
	}
	if run == "" {
		run = "tools"
	}
	name := "runs/" + run + "/answers/" + strings.ToLower(ulid.Make().String()) + ".json"
	if err := h.Blobs.Put(context.WithoutCancel(ctx), name, bytes.NewReader(b)); err != nil {
		// Not one of the named errors: those say that nothing was dispatched.
		return nil, fmt.Errorf("answers of %d bytes could not be saved: %w", len(b), err)
	}
	return &invoke.Response{Object: name}, nil
}

func tally(answers []call.Answer) map[call.Outcome]int {
	n := map[call.Outcome]int{}
	for _, a := range answers {
		n[a.Outcome]++
	}
	return n
}
