package run

import (
	"context"
	"fmt"
	"net/http"
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
	sent := call.Attempt{
		Tool: q.tool.Name, Input: q.input, RequestID: id.Request(at.Refused), Fence: id.Fence(),
		Number: at.Next, Retry: at.Next > 0 || !q.task.heldAt.IsZero(),
	}
	r := l.do(ctx, sent, q.intent, q.claim)
	if r.err != nil {
		return r.Answer, at, r.err
	}
	c.count(r.Answer)
	if r.Refusal() && q.tool.Fence == "" {
		at.Refused++ // a fenced call keeps its id with its fence
	}
	switch r.Outcome {
	case call.Held:
		if over := c.progress.over(q.tool.Provider, r.Scope); over != nil {
			return call.Answer{Outcome: call.Failed, Error: over}, at, nil
		}
	case call.Unknown:
		return unknownAt(r, sent), at, nil
	case call.Retry:
		a, at := c.backoff(q, at, r.Answer)
		return a, at, nil
	}
	return r.Answer, at, nil
}

// unknownAt says which request it is whose outcome nobody knows.
func unknownAt(r reply, sent call.Attempt) call.Answer {
	e := call.Error{Code: call.OutcomeUnknown, Message: "the gateway gave no reason"}
	if r.Error != nil {
		e = *r.Error
	}
	r.Error = e.Of(call.Dispatch{Tool: sent.Tool, Request: sent.RequestID, Attempt: sent.Number, At: r.sent.UTC()})
	return r.Answer
}

// backoff decides about a failure that may pass: until when it is waited, or that it is final.
func (c *caller) backoff(q query, at call.Cursor, a call.Answer) (call.Answer, call.Cursor) {
	now := time.Now()
	if a.Dispatched || a.Charged {
		at.Next++
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
	until := now.Add(hold.Backoff(tries, string(q.id)))
	return call.Answer{Outcome: call.Held, Until: later(until, a.Until), Scope: a.Scope, Error: a.Error}, at
}

// count books a physical answer. A refused attempt that was not dispatched is no dispatch (Q7).
func (c *caller) count(a call.Answer) {
	if a.Dispatched {
		c.stats.dispatched.Add(1)
		if a.Outcome == call.Held && a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			c.stats.refused.Add(1)
		}
	}
	c.stats.cost.Add(a.CostMicros)
}

// settle says what an answer is to the row.
func settle(a call.Answer, at call.Cursor) found {
	switch a.Outcome {
	case call.Result, call.Missing:
		v := valueOf(a)
		return found{value: v, miss: a.Outcome == call.Missing || string(v) == "null"}
	case call.Held, call.Refused:
		return found{hold: &held{until: a.Until, scope: a.Scope}, at: at}
	}
	fail := a.Error
	if fail == nil {
		fail = &call.Error{Code: "FAILED", Message: "the gateway gave no reason"}
	}
	return found{fail: fail}
}
