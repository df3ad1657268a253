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

// event is a cell that waits for an answer from outside. The order: the boundary is durable, so that nothing of what
// follows is ever begun anew; the waiter is known, so that an answer finds it; somebody is told, once; the row leaves.
func (r *row) event(ctx context.Context, c int, column *mapspec.Column) result {
	if rec := r.state.Receipt(c, answerStep); rec != nil {
		known, res := r.recall(ctx, rec)
		if known == nil {
			return res
		}
		return r.received(c, known)
	}
	fresh := r.state.Boundary(c, answerStep) == nil
	b, res := r.bound(ctx, c, answerStep, func(b *sheet.Boundary) error {
		return openEvent(column.Event, &r.env, b)
	})
	if b == nil {
		return res
	}
	w := r.waiter(c, column, b)
	if err := r.register(ctx, w, fresh); err != nil {
		return result{err: err}
	}
	if w.State == sheet.WaiterOpen {
		if res := r.notify(ctx, c, column, b, w); res != nil {
			return *res
		}
	}
	if w.State == sheet.WaiterOpen && !b.Open && !time.Now().Before(b.Until) {
		if _, err := w.Settle(ctx, r.s.ports.Store, sheet.WaiterExpired, nil, time.Now()); err != nil {
			return result{err: err}
		}
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

func (r *row) waiter(c int, column *mapspec.Column, b *sheet.Boundary) *sheet.Waiter {
	return &sheet.Waiter{
		Key: b.Key, Run: r.s.job.Run.ID, Shard: r.s.shard, Row: r.task.Row, Index: r.task.Index,
		Column: c, Step: b.Step, Name: column.Name, Until: b.Until, Open: b.Open,
	}
}

// register makes the waiter known, or finds how it stands.
func (r *row) register(ctx context.Context, w *sheet.Waiter, fresh bool) error {
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	return w.Register(durable, r.s.ports.Store, fresh)
}

// notify makes the call that tells somebody, unless it has been made. It returns what keeps the row from waiting: a hold
// of the call's provider, or nil. A failure ends the wait, because nobody knows of it. Where it is unknown whether the
// call was made it may have been: then the answer, or the time, decides.
func (r *row) notify(ctx context.Context, c int, column *mapspec.Column, b *sheet.Boundary, w *sheet.Waiter) *result {
	if len(column.Steps) == 0 {
		return nil
	}
	rec := r.state.Receipt(c, notifyStep)
	if rec == nil {
		made, res := r.tell(ctx, c, column, b)
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
	if w.State == sheet.WaiterClosed {
		return &result{fail: rec.Error}
	}
	return nil // it was answered before
}

// tell makes the notification's call, and keeps of it only that it was made.
func (r *row) tell(ctx context.Context, c int, column *mapspec.Column, b *sheet.Boundary) (*sheet.Receipt, *result) {
	step := &column.Steps[0]
	rec := sheet.Receipt{Column: c, Step: notifyStep}
	r.env.Answer = mapspec.Answer(b.Key, r.s.link(r.task.Row, b), b.Wakes())
	q, with, fail := r.query(c, notifyStep, step)
	r.env.Answer = nil
	if fail == nil {
		var res result
		if rec, res = r.ask(ctx, q, with, rec, step, false); res.hold != nil || res.err != nil {
			return nil, &res
		}
		fail = rec.Error
	}
	rec = sheet.Receipt{Column: c, Step: notifyStep, Rejected: fail == nil, Error: fail}
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

// settled makes the cell of what has become of the wait, or lets the row leave.
func (r *row) settled(ctx context.Context, c int, column *mapspec.Column, b *sheet.Boundary, w *sheet.Waiter) result {
	rec := sheet.Receipt{Column: c, Step: answerStep}
	switch w.State {
	case sheet.WaiterAnswered:
		rec.Value = w.Value
		if column.Event.Result != nil {
			r.keepOfAnswer(&rec, w.Value, column.Event.Result)
		}
	case sheet.WaiterExpired:
		r.expired(&rec, column.Event, b)
	case sheet.WaiterClosed: // and the process died before the row could end
		told := r.state.Receipt(c, notifyStep)
		if told == nil || told.Error == nil {
			return result{err: fmt.Errorf("%w: the wait for %q was ended, and nothing says why", store.ErrDamaged, b.Key)}
		}
		return result{fail: told.Error}
	default:
		return result{away: b}
	}
	if err := r.receive(ctx, rec, false); err != nil {
		return result{err: err}
	}
	if !r.task.listed {
		r.s.away.left(b, r.task.Row)
	}
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
		rec.Error = &call.Error{Code: "EVENT_EXPIRED", Message: fmt.Sprintf("nobody answered %q until %s", b.Key, b.Until.Format(time.RFC3339))}
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
