package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	force    bool
	budget   hold.Budget
	lanes    map[string]*lane // by provider
	flight   call.Flight
	memo     *call.Memo
	receipts *call.Receipts
	pool     *pool
	stats    *tally
}

// tally counts what the calls come to, for the whole shard.
type tally struct {
	logical, dispatched, refused, reused, cached, cost atomic.Int64
	residentMs, heldMs, batches, batchMs               atomic.Int64
	base                                               sheet.Stats // of earlier slices
	began                                              time.Time   // of this slice
}

func (t *tally) stats() sheet.Stats {
	return t.base.Plus(sheet.Stats{
		Logical: t.logical.Load(), Dispatched: t.dispatched.Load(), Refused429: t.refused.Load(),
		Reused: t.reused.Load(), Cached: t.cached.Load(), CostMicros: t.cost.Load(),
		ResidentWaitMs: t.residentMs.Load(), HeldMs: t.heldMs.Load(),
		SliceMs: time.Since(t.began).Milliseconds(), ToolBatches: t.batches.Load(), ToolMs: t.batchMs.Load(),
	})
}

// batch counts a batch that went to the gateway. A tally need not be there.
func (t *tally) batch(took time.Duration) {
	if t != nil {
		t.batches.Add(1)
		t.batchMs.Add(took.Milliseconds())
	}
}

// query is a logical call that is about to be made, or made again.
type query struct {
	id     call.ID
	tool   *mapspec.Tool
	input  json.RawMessage
	digest call.Digest // zero: not shared
	next   int         // attempt number to make
	intent *intent     // of a call that must not be repeated
	task   *task
}

// found is what a query came to, besides errors of the infrastructure.
type found struct {
	value json.RawMessage // of a result; "null" of a missing one
	miss  bool
	fail  *call.Error
	hold  *held
	next  int // with hold: the number of the attempt that follows
}

// held says that the row waits.
type held struct {
	until time.Time
	scope string
}

// make brings a query to an end, or to a hold. An error ends the slice.
func (c *caller) make(ctx context.Context, q query) (found, error) {
	if q.digest.IsZero() {
		a, next, err := c.attempt(ctx, q)
		return c.settle(q, a, next), err
	}
	shared, owner := c.flight.Join(q.digest)
	if !owner {
		return c.follow(ctx, shared)
	}
	// Only the owner looks for what is remembered: between a look and joining, another owner could come and go.
	if a, ok := c.recall(q.digest); ok {
		c.stats.reused.Add(1)
		shared.Settle(a, q.next, nil)
		return c.settle(q, a, q.next), nil
	}
	a, next, err := c.claimed(ctx, q)
	if err == nil {
		c.remember(q.digest, a)
	}
	shared.Settle(a, next, err)
	return c.settle(q, a, next), err
}

// refusal marks the key under which a definite refusal is remembered.
const refusal = "!"

// remember keeps a result for identical calls of later rows, and a definite refusal too: a provider that calls a
// question wrong will not be asked it again.
func (c *caller) remember(d call.Digest, a call.Answer) {
	switch {
	case a.Outcome == call.Result || a.Outcome == call.Missing:
		c.memo.Put(d.String(), valueOf(a))
	case a.Outcome == call.Failed && definite(a.Status):
		if b, err := json.Marshal(a.Error); err == nil {
			c.memo.Put(refusal+d.String(), b)
		}
	}
}

// definite reports whether the status says that the request itself is wrong, and not the moment.
func definite(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

func (c *caller) recall(d call.Digest) (call.Answer, bool) {
	if v, ok := c.memo.Get(d.String()); ok {
		return call.Answer{Outcome: call.Result, Value: v}, true
	}
	if v, ok := c.memo.Get(refusal + d.String()); ok {
		a := call.Answer{Outcome: call.Failed}
		return a, json.Unmarshal(v, &a.Error) == nil
	}
	return call.Answer{}, false
}

// follow waits for the identical call of another row; the place at work is free meanwhile.
func (c *caller) follow(ctx context.Context, shared *call.Shared) (found, error) {
	c.pool.pause()
	a, next, err := shared.Wait(ctx)
	c.pool.unpause(true)
	if err != nil {
		return found{}, err
	}
	f := c.settle(query{}, a, next)
	if f.hold == nil {
		c.stats.reused.Add(1)
	}
	return f, nil
}

// claimed makes the call under a claim that other runs respect, where its tool allows reuse across runs. A hold
// gives the claim up first, so that whoever comes back first makes the call (H10).
func (c *caller) claimed(ctx context.Context, q query) (call.Answer, int, error) {
	if q.tool.Cache <= 0 {
		return c.attempt(ctx, q)
	}
	lasts := c.claimLasts(q)
	look, err := c.receipts.Claim(ctx, q.tool.Name, q.digest, c.run, time.Now().Add(lasts), c.force)
	switch {
	case err != nil:
		return call.Answer{}, 0, fmt.Errorf("claim of %s: %w", q.id, err)
	case look.Hit:
		c.stats.cached.Add(1)
		return call.Answer{Outcome: call.Result, Value: look.Value}, 0, nil
	case !look.Busy.IsZero():
		return call.Answer{Outcome: call.Held, Until: look.Busy}, q.next, nil
	}
	stopRenewing := c.renew(q, &look, lasts)
	a, next, err := c.attempt(ctx, q)
	stopRenewing()
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	if err == nil && (a.Outcome == call.Result || a.Outcome == call.Missing) {
		return a, next, c.receipts.Settle(durable, q.tool.Name, q.digest, look, c.run, valueOf(a), q.tool.Cache)
	}
	if release := c.receipts.Release(durable, q.tool.Name, q.digest, look); release != nil && err == nil {
		err = fmt.Errorf("claim of %s could not be released: %w", q.id, release)
	}
	return a, next, err
}

// durableWrite bounds a write that survives the cancellation of its caller.
const durableWrite = 20 * time.Second

func valueOf(a call.Answer) json.RawMessage {
	if a.Outcome == call.Missing || a.Value == nil {
		return json.RawMessage("null")
	}
	return a.Value
}

// attempt makes one physical attempt and says which attempt follows it. A failure that may pass becomes a hold
// until its backoff is over; when the attempts are used up it becomes final.
func (c *caller) attempt(ctx context.Context, q query) (call.Answer, int, error) {
	l := c.lanes[q.tool.Provider.Name]
	if l == nil {
		return call.Answer{}, 0, fmt.Errorf("no lane for provider %q", q.tool.Provider.Name)
	}
	a, err := l.do(ctx, call.Attempt{
		Tool: q.tool.Name, Input: q.input, RequestID: q.id.Request(0), Fence: q.id.Fence(),
		Number: q.next, Retry: q.next > 0 || !q.task.heldAt.IsZero(),
	}, q.intent)
	if err != nil {
		return a, q.next, err
	}
	c.count(a)
	if a.Outcome != call.Retry {
		return a, q.next, nil
	}
	return c.backoff(q, a)
}

// backoff decides about a failure that may pass.
func (c *caller) backoff(q query, a call.Answer) (call.Answer, int, error) {
	now, next := time.Now(), q.next
	if a.Dispatched {
		next++
		q.task.Unsent = time.Time{}
	} else if q.task.Unsent.IsZero() {
		q.task.Unsent = now.UTC()
	}
	tooLong := !a.Dispatched && now.Sub(q.task.Unsent) >= unsentWindow
	if next >= q.tool.Attempts || tooLong {
		a.Outcome = call.Failed
		return a, next, nil
	}
	tries := max(next-1, 0)
	if !a.Dispatched {
		tries = int(now.Sub(q.task.Unsent) / (2 * time.Second)) // no attempt is charged, but each wait is longer
	}
	until := now.Add(hold.Backoff(tries, string(q.id)))
	return call.Answer{Outcome: call.Held, Until: later(until, a.Until), Scope: a.Scope, Error: a.Error}, next, nil
}

// count books a physical answer. A refused attempt that was not dispatched is no dispatch (Q7).
func (c *caller) count(a call.Answer) {
	if a.Dispatched {
		c.stats.dispatched.Add(1)
		if a.Outcome == call.Held {
			c.stats.refused.Add(1)
		}
	}
	c.stats.cost.Add(a.CostMicros)
}

func (c *caller) settle(q query, a call.Answer, next int) found {
	switch a.Outcome {
	case call.Result, call.Missing:
		v := valueOf(a)
		return found{value: v, miss: a.Outcome == call.Missing || string(v) == "null"}
	case call.Held, call.Refused:
		return found{hold: &held{until: a.Until, scope: a.Scope}, next: next}
	}
	fail := a.Error
	if fail == nil {
		fail = &call.Error{Code: "FAILED", Message: "the gateway gave no reason"}
	}
	return found{fail: fail}
}

// errStopped ends waits of a slice that is being stopped at once.
var errStopped = errors.New("the slice was stopped")
