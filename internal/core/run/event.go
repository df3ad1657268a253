package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/link"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/value"
)

// Places in an event's column: what is kept of its notification, and of its answer.
const (
	notifyStep = 0
	answerStep = 1
)

// event is a cell that waits for an answer from outside.
func (r *row) event(ctx context.Context, c int, column *mapspec.Column) result {
	if rec := r.receipt(c, answerStep); rec != nil {
		known, res := r.recall(ctx, rec)
		if known == nil {
			return res
		}
		return r.received(c, known)
	}
	q := &question{column: c, name: column.Name, notify: notifyStep, answer: answerStep,
		open: func(b *sheet.Boundary) error { return openEvent(column.Event, &r.env, b) }}
	if len(column.Steps) > 0 {
		q.tell = func(ctx context.Context, b *sheet.Boundary) (*sheet.Receipt, *result) {
			return r.tell(ctx, c, column, b)
		}
	}
	b, w, res := r.asked(ctx, q)
	if w == nil {
		return res
	}
	return r.settled(ctx, c, column, b, w)
}

// openEvent fixes an event's key and its end.
func openEvent(e *mapspec.Event, env *mapspec.Env, b *sheet.Boundary) error {
	var err error
	if b.Key, err = e.KeyOf(env); err != nil {
		return err
	}
	span, err := e.Expires.Eval(env)
	b.Until, b.Open = b.Until.Add(span), e.OnTimeout == mapspec.TimeoutPark
	return err
}

// question is an event in the terms of what is done about it.
type question struct {
	column         int
	name           string // of the column
	notify, answer int    // places
	open           func(*sheet.Boundary) error
	tell           func(context.Context, *sheet.Boundary) (*sheet.Receipt, *result) // makes the notification; nil: nobody is told
}

// asked brings a question to its end. The order: the boundary is durable, so that nothing of what follows is ever begun
// anew; the waiter is known, so that an answer finds it; somebody is told, once; the row waits. It returns how the wait
// has ended, or, without a waiter, what the cell has instead: a hold, the boundary at which the row waits, a failure.
func (r *row) asked(ctx context.Context, q *question) (*sheet.Boundary, *sheet.Waiter, result) {
	fresh := r.boundary(q.column, q.answer) == nil
	b, res := r.bound(ctx, q.column, q.answer, q.open)
	if b == nil {
		return nil, nil, res
	}
	w := &sheet.Waiter{
		Key: b.Key, Run: r.s.job.Run.ID, Shard: r.s.shard, Row: r.task.Row, Index: r.task.Index,
		Column: q.column, Step: q.answer, Name: q.name, Until: b.Until, Open: b.Open,
	}
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	if err := w.Register(durable, r.s.ports.Store, fresh); err != nil {
		return nil, nil, result{err: err}
	}
	if w.State == sheet.WaiterOpen && q.tell != nil {
		if res := r.notified(ctx, q, b, w); res != nil {
			return nil, nil, *res
		}
	}
	if w.State == sheet.WaiterOpen && !b.Open && !time.Now().Before(b.Until) {
		if _, err := w.Settle(ctx, r.s.ports.Store, sheet.WaiterExpired, nil, time.Now()); err != nil {
			return nil, nil, result{err: err}
		}
	}
	switch w.State {
	case sheet.WaiterOpen:
		return nil, nil, result{away: b}
	case sheet.WaiterClosed: // and the process died before the cell could fail
		told := r.receipt(q.column, q.notify)
		if told == nil || told.Error == nil {
			return nil, nil, result{err: fmt.Errorf("%w: the wait for %q was ended, and nothing says why", store.ErrDamaged, b.Key)}
		}
		return nil, nil, result{fail: told.Error}
	}
	return b, w, result{}
}

// notified makes the call that tells somebody, unless it has been made. It returns what keeps the row from waiting: a hold
// of the call's provider, or nil. A failure ends the wait, because nobody knows of it. Where it is unknown whether the
// call was made it may have been: then the answer, or the time, decides.
func (r *row) notified(ctx context.Context, q *question, b *sheet.Boundary, w *sheet.Waiter) *result {
	rec := r.receipt(q.column, q.notify)
	if rec == nil {
		made, res := q.tell(ctx, b)
		if res != nil {
			return res
		}
		rec = made
	}
	if rec.Error == nil || rec.Error.Code == call.OutcomeUnknown {
		return nil
	}
	if _, err := w.Settle(ctx, r.s.ports.Store, sheet.WaiterClosed, nil, time.Now()); err != nil {
		return &result{err: err}
	}
	return nil // unless it was answered before, it is closed
}

// tell makes the notification's call, and keeps of it only that it was made.
func (r *row) tell(ctx context.Context, c int, column *mapspec.Column, b *sheet.Boundary) (*sheet.Receipt, *result) {
	step := &column.Steps[0]
	r.env.Answer = mapspec.Answer(b.Key, r.s.link(r.task.Row, b), b.Wakes())
	q, with, fail := r.query(c, notifyStep, step)
	r.env.Answer = nil
	rec := sheet.Receipt{Column: c, Step: notifyStep, Error: fail}
	if fail == nil {
		var res result
		if rec, res = r.call(ctx, q, with, rec, step, false); res.hold != nil || res.err != nil {
			return nil, &res
		}
	}
	rec = sheet.Receipt{Column: c, Step: notifyStep, Rejected: rec.Error == nil, Error: rec.Error}
	if err := r.receive(ctx, rec, false); err != nil {
		return nil, &result{err: err}
	}
	return &rec, nil
}

// link is where a person can answer; empty where there is no such place.
func (s *slice) link(row int64, b *sheet.Boundary) string {
	if s.set.Link == nil {
		return ""
	}
	return s.set.Link(link.Place{Run: s.job.Run.ID, Row: row, Column: b.Column, Step: b.Step, Key: b.Key}, b.Wakes())
}

// settled makes the cell of what has become of the wait.
func (r *row) settled(ctx context.Context, c int, column *mapspec.Column, b *sheet.Boundary, w *sheet.Waiter) result {
	rec := sheet.Receipt{Column: c, Step: answerStep}
	if w.State == sheet.WaiterAnswered {
		rec.Value = w.Value
		if column.Event.Result != nil {
			r.keepOfAnswer(&rec, w.Value, column.Event.Result)
		}
	} else {
		r.expired(&rec, column.Event, b)
	}
	if err := r.receive(ctx, rec, false); err != nil {
		return result{err: err}
	}
	r.s.away.left(b, r.task.Row)
	return r.received(c, &rec)
}

func (r *row) keepOfAnswer(rec *sheet.Receipt, raw json.RawMessage, keep *mapspec.Template) {
	v, err := value.Decode(raw)
	if err == nil {
		env := r.env
		env.Result = v
		if v, err = keep.Eval(&env); err == nil {
			rec.Value, err = value.Encode(v)
		}
	}
	if err != nil {
		rec.Value, rec.Error = nil, exprError(err)
	}
}

// expired is what the column says of an answer that has not come (E4).
func (r *row) expired(rec *sheet.Receipt, e *mapspec.Event, b *sheet.Boundary) {
	if e.OnTimeout != mapspec.TimeoutValue {
		rec.Error = expiredError(b)
		return
	}
	v, err := e.Default.Eval(&r.env)
	if err == nil {
		rec.Value, err = value.Encode(v)
	}
	if err != nil {
		rec.Error = exprError(err)
	}
}

func expiredError(b *sheet.Boundary) *call.Error {
	return &call.Error{Code: "EVENT_EXPIRED", Message: fmt.Sprintf("nobody answered %q until %s", b.Key, b.Until.Format(time.RFC3339))}
}
