package run

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
)

// resultStep is where the result of a resolver is recorded; its operations have the places from 0 on.
const resultStep = -1

// NoResolverError: the run's map names a resolver that this program does not have.
type NoResolverError struct{ Name string }

func (e *NoResolverError) Error() string {
	return fmt.Sprintf("this program has no resolver %q; the run was started by one that has it", e.Name)
}

// resolve is a cell that a function in Go computes. The function is run from its beginning in each pass of the row, on what
// its operations have come to; when it has ended its result is recorded, and it is not run again.
func (r *row) resolve(ctx context.Context, c int, column *mapspec.Column) result {
	if rec := r.receipt(c, resultStep); rec != nil {
		known, res := r.recall(ctx, rec)
		if known == nil {
			return res
		}
		return r.received(c, known)
	}
	known, ok := r.s.ports.Resolvers[column.Resolve.Name]
	if !ok {
		return result{err: &NoResolverError{column.Resolve.Name}}
	}
	with, err := column.Resolve.With.Eval(&r.env)
	if err != nil {
		return result{fail: exprError(err)}
	}
	input, _ := with.(map[string]any)
	h := &resolving{row: r, ctx: ctx, column: c, name: column.Name, tools: r.s.job.resolverTools(r.s.ports.Resolvers), before: *r.task,
		in: maps.Clone(r.env.Row), cells: maps.Clone(r.env.Cells)}
	o := resolver.Execute(h, known.Run, maps.Clone(input))
	switch {
	case o.Err != nil:
		return result{err: o.Err}
	case len(o.Waits) > 0:
		return h.waits(o.Waits)
	case o.Stack != "":
		r.s.ports.logger().Error("resolver panicked", slog.String("run", r.s.job.Run.ID), slog.Int64("row", r.task.Row),
			slog.String("column", column.Name), slog.String("panic", o.Fail.Message), slog.String("stack", o.Stack))
	}
	return r.resolved(ctx, c, o)
}

// resolved records the result, unless nothing of the row comes after it: then it travels with the row's end.
func (r *row) resolved(ctx context.Context, c int, o resolver.Outcome) result {
	if c < r.s.job.lastCall {
		rec := sheet.Receipt{Column: c, Step: resultStep, Value: o.Value, Error: o.Fail}
		if err := r.record(ctx, rec); err != nil {
			return result{err: err}
		}
		return r.received(c, &rec)
	}
	if o.Fail != nil {
		return result{fail: o.Fail}
	}
	r.cells[c] = o.Value
	if r.s.job.unread[c] {
		return result{}
	}
	v, err := value.Decode(o.Value)
	if err != nil {
		return result{fail: exprError(err)}
	}
	return result{value: v}
}

// record makes a receipt durable that is not a call's.
func (r *row) record(ctx context.Context, rec sheet.Receipt) error {
	ticket, err := r.s.pages.append(ctx, r.page, &sheet.Entry{Kind: sheet.Received, Row: r.task.Row, Receipt: rec})
	if err != nil {
		return err
	}
	return ticket.Wait(ctx)
}

// waits is what the row does while some of the resolver's operations wait: it goes on with whichever ends first. While a
// provider holds one of them the row is held, and otherwise it leaves.
func (h *resolving) waits(list []*resolver.Suspension) result {
	var first *held
	var bound *sheet.Boundary
	for _, s := range list {
		switch why := s.Reason.(type) {
		case *held:
			if first == nil || why.until.Before(first.until) {
				first = why
			}
		case *sheet.Boundary:
			if bound == nil || wakesBefore(why, bound.Wakes()) {
				bound = why
			}
		}
	}
	if first == nil {
		return result{away: bound}
	}
	if bound != nil && wakesBefore(bound, first.until) {
		first = &held{until: bound.Wakes(), why: call.Why{Reason: call.Boundary}}
	}
	return result{hold: first}
}

// wakesBefore reports whether the boundary ends before a time; zero is never.
func wakesBefore(b *sheet.Boundary, t time.Time) bool {
	return !b.Wakes().IsZero() && (t.IsZero() || b.Wakes().Before(t))
}

// fork runs parts of a row side by side, some at a time. Each has a place of its own, so that those that wait for their turn
// at a provider leave theirs to others.
func (p *pool) fork(n int, body func(int)) {
	p.pause()
	defer p.unpause()
	places, done := make(chan struct{}, forked), make(chan struct{}, n)
	for i := range n {
		places <- struct{}{}
		go func() {
			defer func() { <-places; done <- struct{}{} }()
			p.enter()
			defer p.leaveEarly()
			body(i)
		}()
	}
	for range n {
		<-done
	}
}

// forked is how many branches of one row are at work at once, at most.
const forked = 16

func (p *pool) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork++
}

func (p *pool) leaveEarly() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork--
	p.offer()
	p.feed()
	p.tell()
}

// unsentSince keeps since when nothing could be sent, for calls of which there may be several.
func (h *resolving) unsentSince(t *task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.task.Unsent = sooner(h.row.task.Unsent, t.Unsent)
}

// progress forgets what the row has waited for a call that has ended.
func (h *resolving) progress() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.task.residency, h.row.task.Unsent, h.row.task.Spent = noResidency, time.Time{}, false
}
