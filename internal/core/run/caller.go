package run

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
)

// memoBudget is how many bytes of results are remembered for identical calls of later rows: some 50,000 small ones.
const memoBudget = 16 << 20

// unsentWindow is how long a call is repeated without charge while provably nothing can be sent (T1).
const unsentWindow = 60 * time.Second

// caller makes the calls of a slice's rows: it finds results that exist already, shares calls in flight, and
// brings the others to the gateway through their provider's lane.
type caller struct {
	run      string
	since    time.Time // results of other runs from before this do not count; zero: all do
	budget   hold.Budget
	lanes    map[string]*lane // by provider
	flight   call.Flight
	memo     *call.Memo
	receipts *call.Receipts
	pool     *pool
	progress *progress
	stats    *tally
}

// tally counts what the calls come to, for the whole shard.
type tally struct {
	logical, dispatched, refused, reused, cached, cost atomic.Int64
	residentMs, heldMs, batches, batchMs               atomic.Int64
	heapPeak, squeezed                                 atomic.Int64
	bodies                                             call.BodyTally
	base                                               sheet.Stats // of earlier slices
	began                                              time.Time   // of this slice
	memory                                             int64       // of its function, in MB
	billed                                             call.BilledGateway
}

func (t *tally) stats() sheet.Stats {
	tool := call.Billed{Millis: t.batchMs.Load()}
	if t.billed != nil {
		tool = t.billed.Billed()
	}
	return t.base.Plus(sheet.Stats{
		Logical: t.logical.Load(), Dispatched: t.dispatched.Load(), Refused429: t.refused.Load(),
		Reused: t.reused.Load(), Cached: t.cached.Load(), CostMicros: t.cost.Load(),
		ResidentWaitMs: t.residentMs.Load(), HeldMs: t.heldMs.Load(),
		SliceMs: time.Since(t.began).Milliseconds(), ToolBatches: t.batches.Load(), ToolMs: tool.Millis,
		SliceMB: t.memory, ToolMB: tool.MemoryMB,
		Memory: sheet.MemoryUse{Bodies: t.bodies.Use(), HeapPeak: t.heapPeak.Load(), Squeezed: t.squeezed.Load()},
	})
}

// batch counts a batch that went to the gateway. A tally need not be there.
func (t *tally) batch(took time.Duration) {
	if t != nil {
		t.batches.Add(1)
		t.batchMs.Add(took.Milliseconds())
	}
}

// count books a request. One that was not dispatched is none (Q7). A tally need not be there.
func (t *tally) count(a call.Answer) {
	if t == nil {
		return
	}
	if a.Dispatched {
		t.dispatched.Add(1)
		if a.Outcome == call.Held && a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			t.refused.Add(1)
		}
	}
	t.cost.Add(a.CostMicros)
}

// query is a logical call that is about to be made, or made again.
type query struct {
	id     call.ID
	place  call.Place
	tool   *mapspec.Tool
	input  json.RawMessage
	digest call.Digest // zero: not shared
	at     call.Cursor // the attempt to make
	intent *intent     // of a call that must not be repeated
	claim  *claim      // towards other runs; nil: they do not share it
	task   *task
}

// identity names the call towards the gateway and the provider. Rows that make the identical call are one call there,
// whichever of them makes it.
func (c *caller) identity(q query) call.ID {
	if q.digest.IsZero() {
		return q.id
	}
	return call.SharedID(c.run, q.digest)
}

// found is what a query came to, besides errors of the infrastructure.
type found struct {
	value json.RawMessage // of a result; "null" of a missing one
	miss  bool
	fail  *call.Error
	hold  *held
	at    call.Cursor // with hold: the attempt that follows
}

// held says that the row waits.
type held struct {
	until time.Time
	scope string
	why   call.Why
}

// make brings a query to an end, or to a hold. An error ends the slice.
func (c *caller) make(ctx context.Context, q query) (found, error) {
	if q.digest.IsZero() {
		a, at, err := c.attempt(ctx, q)
		return settle(a, at), err
	}
	shared, owner := c.flight.Join(q.digest)
	if !owner {
		return c.follow(ctx, shared)
	}
	// Only the owner looks for what is remembered: between a look and joining, another owner could come and go.
	if a, ok := c.recall(q.digest); ok {
		c.stats.reused.Add(1)
		shared.Settle(a, q.at, nil)
		return settle(a, q.at), nil
	}
	a, at, err := c.claimed(ctx, q)
	if err == nil {
		c.remember(q.digest, a)
	}
	shared.Settle(a, at, err)
	return settle(a, at), err
}

// follow waits for the identical call of another row; the place at work is free meanwhile.
func (c *caller) follow(ctx context.Context, shared *call.Shared) (found, error) {
	c.pool.pause()
	a, at, err := shared.Wait(ctx)
	c.pool.unpause()
	if err != nil {
		return found{}, err
	}
	f := settle(a, at)
	if f.hold == nil {
		c.stats.reused.Add(1)
	}
	return f, nil
}

// claimed makes the call under a claim that other runs respect, where its tool allows reuse across runs. A hold gives
// the claim up before anybody hears of it (H10).
func (c *caller) claimed(ctx context.Context, q query) (call.Answer, call.Cursor, error) {
	if q.tool.Cache <= 0 {
		return c.attempt(ctx, q)
	}
	k, err := c.look(ctx, q)
	if err != nil {
		return call.Answer{}, q.at, err
	}
	if a, ok := k.found(); ok {
		return a, q.at, nil
	}
	q.claim = k
	a, at, err := c.attempt(ctx, q)
	return a, at, k.end(ctx, a, err)
}

// durableWrite bounds a write that survives the cancellation of its caller.
const durableWrite = 20 * time.Second

func valueOf(a call.Answer) json.RawMessage {
	if a.Outcome == call.Missing || a.Value == nil {
		return json.RawMessage("null")
	}
	return a.Value
}

// errStopped ends waits of a slice that is being stopped at once.
var errStopped = errors.New("the slice was stopped")
