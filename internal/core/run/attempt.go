package run

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
)

// attempt makes one physical attempt and says which attempt follows it. A failure that may pass becomes a hold
// until its backoff is over; when the attempts are used up it becomes final.
func (c *caller) attempt(ctx context.Context, q query) (call.Answer, call.Cursor, error) {
	l, at := c.lanes[q.tool.Provider.Name], q.at
	if l == nil {
		return call.Answer{}, at, fmt.Errorf("no lane for provider %q", q.tool.Provider.Name)
	}
	id := c.identity(q)
	r := l.do(ctx, &turn{tool: q.tool, place: q.place, intent: q.intent, claim: q.claim, bound: at.Batch, attempt: call.Attempt{
		Tool: q.tool.Name, Input: q.input, RequestID: id.Request(at.Refused), Fence: id.Fence(),
		Number: at.Next, Retry: at.Next > 0 || !q.task.heldAt.IsZero(),
	}})
	if r.err != nil {
		return r.Answer, at, r.err
	}
	if r.Refusal() && q.tool.Fence == "" {
		at.Refused++ // a fenced call keeps its id with its fence
	}
	a := r.Answer
	switch {
	case a.Outcome == call.Retry:
		if a.Dispatched && !a.Refusal() {
			at.Batch = r.batch // it may have arrived
		}
		a, at = c.backoff(q, at, r)
	case a.Outcome == call.Held:
		if over := c.progress.over(q.tool.Provider, a.Scope); over != nil {
			a = call.Answer{Outcome: call.Failed, Error: over}
		}
	}
	if a.Outcome == call.Failed && r.Outcome != call.Failed && at.Batch != nil {
		a.Outcome = call.Unknown // made again by itself, it would be another request
	}
	if a.Outcome == call.Unknown {
		a.Error = q.unknown(at, a, r)
	}
	return a, at, nil
}

// unknown says which request it is whose outcome nobody knows.
func (q *query) unknown(at call.Cursor, a call.Answer, r reply) *call.Error {
	e := call.Error{Code: call.OutcomeUnknown, Message: "the gateway gave no reason"}
	if a.Error != nil {
		e = *a.Error
	}
	if e.Code != call.OutcomeUnknown {
		e.Code, e.Message = call.OutcomeUnknown, e.Message+"; the call may have been executed, and can only be repeated together with those that it was sent with"
	}
	d := call.Dispatch{Tool: q.tool.Name, Request: r.asked.RequestID, Attempt: r.asked.Number}
	if !r.sent.IsZero() {
		d.At = r.sent.UTC()
	}
	if at.Batch != nil {
		d.Request = at.Batch.ID // what its provider knows it by
	}
	return e.Of(d)
}

// backoff decides about a failure that may pass: until when it is waited, or that it is final.
func (c *caller) backoff(q query, at call.Cursor, r reply) (call.Answer, call.Cursor) {
	now, a, jitter := time.Now(), r.Answer, string(q.id)
	if q.tool.Batch != nil {
		jitter = r.asked.RequestID // those that were sent together come back together
	}
	if a.Dispatched || a.Charged {
		at.Next++
		if at.Batch != nil {
			at.Next = max(at.Next, r.asked.Number+1) // they end together, too
		}
		q.task.Unsent = time.Time{}
	} else if q.task.Unsent.IsZero() {
		q.task.Unsent = now.UTC()
	}
	tooLong := !q.task.Unsent.IsZero() && now.Sub(q.task.Unsent) >= unsentWindow
	if at.Next >= q.tool.Attempts || tooLong {
		a.Outcome = call.Failed
		return a, at
	}
	tries := max(at.Next-1, 0)
	if !q.task.Unsent.IsZero() {
		tries = int(now.Sub(q.task.Unsent) / (2 * time.Second)) // no attempt is charged, but each wait is longer
	}
	until := now.Add(hold.Backoff(tries, jitter))
	return call.Answer{Outcome: call.Held, Until: later(until, a.Until), Scope: a.Scope, Error: a.Error, Why: whyAgain(a)}, at
}

// whyAgain is what a call waits for after a failure that may pass.
func whyAgain(a call.Answer) call.Why {
	why := call.Why{Reason: call.Backoff}
	if a.Error != nil {
		why.Code = a.Error.Code
	}
	return why
}

// settle says what an answer is to the row.
func settle(a call.Answer, at call.Cursor) found {
	switch a.Outcome {
	case call.Result, call.Missing:
		v := valueOf(a)
		return found{value: v, miss: a.Outcome == call.Missing || string(v) == "null"}
	case call.Held, call.Refused:
		return found{hold: &held{until: a.Until, scope: a.Scope, why: a.Why}, at: at}
	}
	fail := a.Error
	if fail == nil {
		fail = &call.Error{Code: "FAILED", Message: "the gateway gave no reason"}
	}
	return found{fail: fail}
}
