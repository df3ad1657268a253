package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/sheet"
)

// resolving is the host of a resolver: one pass over a cell. Its operations may be asked for at the same time.
type resolving struct {
	*row
	ctx    context.Context
	column int
	name   string // of the column
	tools  map[string]*mapspec.Tool
	before task // the row's task when the pass began: each call has a copy
	in     map[string]any
	cells  map[string]any

	mu sync.Mutex // guards the row's task
}

// Context implements resolver.Host.
func (h *resolving) Context() context.Context { return h.ctx }

// Row implements resolver.Host.
func (h *resolving) Row() map[string]any { return h.in }

// Cells implements resolver.Host.
func (h *resolving) Cells() map[string]any { return h.cells }

// Index implements resolver.Host.
func (h *resolving) Index() int64 { return h.task.Index }

// Positions implements resolver.Host.
func (h *resolving) Positions() []int {
	h.page.mu.Lock()
	defer h.page.mu.Unlock()
	var list []int
	add := func(column, step int) {
		if column == h.column && step >= 0 {
			list = append(list, step)
		}
	}
	for i := range h.state.Receipts {
		add(h.state.Receipts[i].Column, h.state.Receipts[i].Step)
	}
	for i := range h.state.Cursors {
		add(h.state.Cursors[i].Column, h.state.Cursors[i].Step)
	}
	for i := range h.state.Boundaries {
		add(h.state.Boundaries[i].Column, h.state.Boundaries[i].Step)
	}
	return list
}

// Known implements resolver.Host.
func (h *resolving) Known(position int) (resolver.Record, bool, error) {
	if rec := h.receipt(h.column, position); rec != nil {
		known, res := h.recall(h.ctx, rec)
		if known == nil {
			return resolver.Record{}, false, res.err
		}
		return recordOf(known), true, nil
	}
	if b := h.boundary(h.column, position); b != nil {
		return resolver.Record{Op: opOf(b)}, true, nil
	}
	if c := h.cursor(h.column, position); c != nil {
		return resolver.Record{Op: c.Op}, true, nil
	}
	return resolver.Record{}, false, nil
}

func recordOf(rec *sheet.Receipt) resolver.Record {
	return resolver.Record{Op: rec.Op, Done: true, Value: rec.Value, Error: rec.Error, Used: rec.Used}
}

// opOf is the operation that waits at a boundary, as package resolver names it.
func opOf(b *sheet.Boundary) string {
	if b.Event() {
		return resolver.OpEvent(b.Key)
	}
	return resolver.OpSleep
}

// Save implements resolver.Host.
func (h *resolving) Save(position int, rec resolver.Record) error {
	return h.record(h.ctx, sheet.Receipt{Column: h.column, Step: position, Op: rec.Op, Used: rec.Used, Value: rec.Value, Error: rec.Error})
}

// Fork implements resolver.Host.
func (h *resolving) Fork(n int, body func(int)) { h.s.pool.fork(n, body) }

// Call implements resolver.Host.
func (h *resolving) Call(position int, op, tool string, with map[string]any) (resolver.Record, error) {
	rec, err := h.made(position, op, tool, with)
	if err != nil {
		return resolver.Record{}, err
	}
	h.s.tally.logical.Add(1)
	if err := h.record(h.ctx, rec); err != nil {
		return resolver.Record{}, err
	}
	h.progress()
	return recordOf(&rec), nil
}

// made makes a call. Where it is put off, the number of its next attempt is durable before the row waits (R6).
func (h *resolving) made(position int, op, name string, with map[string]any) (sheet.Receipt, error) {
	rec := sheet.Receipt{Column: h.column, Step: position, Op: op}
	tool := h.tools[name]
	if tool == nil {
		rec.Error = &call.Error{Code: "UNKNOWN_TOOL", Message: "the resolver has not declared the tool " + name + ", or the catalogue lacks it"}
		return rec, nil
	}
	if c := h.cursor(h.column, position); c != nil && c.Until.After(time.Now()) { // the row is here for something else
		return rec, &resolver.Suspension{Reason: &held{until: c.Until, scope: c.Scope, why: c.Why}}
	}
	q, with, fail := h.prepare(h.column, position, tool, with)
	if fail != nil {
		rec.Error = fail
		return rec, nil
	}
	t := h.before
	q.task = &t
	if q.intent != nil {
		q.intent.entry.Op = op
	}
	rec, res := h.call(h.ctx, q, with, rec, &mapspec.Step{Tool: tool}, false)
	switch {
	case res.err != nil:
		return rec, res.err
	case res.hold == nil:
		return rec, nil
	}
	h.unsentSince(&t)
	return rec, h.putOff(op, rec, q, res)
}

// putOff records where a call stands that is held, and until when, and returns the hold.
func (h *resolving) putOff(op string, rec sheet.Receipt, q query, res result) error {
	tried := res.tried
	if tried == nil {
		tried = &sheet.Entry{Kind: sheet.Tried, Row: h.task.Row, Receipt: sheet.Receipt{Column: rec.Column, Step: rec.Step},
			Next: q.at.Next, Refused: q.at.Refused, Batch: q.at.Batch}
	}
	tried.Op, tried.Until, tried.Scope, tried.Why = op, res.hold.until.UTC(), res.hold.scope, res.hold.why
	ticket, err := h.s.pages.append(h.ctx, h.page, tried)
	if err == nil {
		err = ticket.Wait(h.ctx)
	}
	if err != nil {
		return err
	}
	return &resolver.Suspension{Reason: res.hold}
}

// Sleep implements resolver.Host.
func (h *resolving) Sleep(position int, _ string, d time.Duration) error {
	if d > mapspec.MaxSpan {
		d = mapspec.MaxSpan
	}
	b, res := h.bound(h.ctx, h.column, position, func(b *sheet.Boundary) error {
		b.Until = b.Until.Add(d)
		return nil
	})
	switch {
	case b == nil:
		return res.err
	case time.Now().Before(b.Until):
		return &resolver.Suspension{Reason: b}
	}
	return nil
}

// Event implements resolver.Host.
func (h *resolving) Event(position int, op string, e resolver.Event) (resolver.Record, error) {
	q := &question{column: h.column, name: h.name, notify: position, answer: resolver.Next(position),
		open: func(b *sheet.Boundary) error { return openQuestion(e, b) }}
	rec := sheet.Receipt{Column: h.column, Step: q.answer, Op: op}
	if err := mapspec.CheckKey(e.Key); err != nil {
		rec.Error = &call.Error{Code: "BAD_INPUT", Message: err.Error()}
		return recordOf(&rec), h.record(h.ctx, rec)
	}
	if e.Notify != nil {
		q.tell = func(_ context.Context, b *sheet.Boundary) (*sheet.Receipt, *result) {
			return h.tellOf(op, e.Notify, q, b)
		}
	}
	b, w, res := h.asked(h.ctx, q)
	switch {
	case res.err != nil:
		return resolver.Record{}, res.err
	case res.hold != nil:
		return resolver.Record{}, &resolver.Suspension{Reason: res.hold}
	case res.away != nil:
		return resolver.Record{}, &resolver.Suspension{Reason: res.away}
	case res.fail != nil:
		rec.Error = res.fail
	case w.State == sheet.WaiterAnswered:
		rec.Value = w.Value
	default:
		rec.Error = expiredError(b)
	}
	if err := h.record(h.ctx, rec); err != nil {
		return resolver.Record{}, err
	}
	if b != nil {
		h.s.away.left(b, h.task.Row)
	}
	return recordOf(&rec), nil
}

func openQuestion(e resolver.Event, b *sheet.Boundary) error {
	expires := e.Expires
	if expires <= 0 {
		expires = mapspec.DefaultExpires
	}
	b.Key, b.Until, b.Open = e.Key, b.Until.Add(min(expires, mapspec.MaxSpan)), e.Open
	return nil
}

// tellOf makes the notification of a resolver's question.
func (h *resolving) tellOf(op string, n *resolver.Notify, q *question, b *sheet.Boundary) (*sheet.Receipt, *result) {
	asked := resolver.Asked{Key: b.Key, URL: h.s.link(h.task.Row, b), Expires: b.Wakes()}
	rec, err := h.Call(q.notify, op, n.Tool, n.With(asked))
	if err != nil {
		var waits *resolver.Suspension
		if errors.As(err, &waits) {
			return nil, &result{hold: waits.Reason.(*held)}
		}
		return nil, &result{err: err}
	}
	return &sheet.Receipt{Column: h.column, Step: q.notify, Op: op, Error: rec.Error}, nil
}
