package run

import (
	"context"
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
)

// sleep is a cell that lets time pass. Its value is the time at which the row went on.
func (r *row) sleep(ctx context.Context, c int, column *mapspec.Column) result {
	b, res := r.bound(ctx, c, 0, func(b *sheet.Boundary) error {
		span, err := column.Sleep.Eval(&r.env)
		b.Until = b.Until.Add(span)
		return err
	})
	switch {
	case b == nil:
		return res
	case time.Now().Before(b.Until):
		return result{away: b}
	}
	return r.keep(c, b.Until.Format(time.RFC3339Nano))
}

// bound finds the boundary at a place of the row, or makes it: fill completes one whose Until is now. It is durable when
// it is returned; nil with the result that the cell has instead.
func (r *row) bound(ctx context.Context, c, step int, fill func(*sheet.Boundary) error) (*sheet.Boundary, result) {
	if b := r.boundary(c, step); b != nil {
		return b, result{}
	}
	b := sheet.Boundary{Column: c, Step: step, Until: time.Now()}
	if err := fill(&b); err != nil {
		return nil, result{fail: exprError(err)}
	}
	b.Until = upToMillis(b.Until)
	ticket, err := r.s.pages.append(ctx, r.page, &sheet.Entry{
		Kind: sheet.Bounded, Row: r.task.Row, Receipt: sheet.Receipt{Column: c, Step: step}, Bound: &b})
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		return nil, result{err: err}
	}
	return &b, result{}
}

// upToMillis is a time in whole milliseconds, never earlier than it was: that is how the wait list keeps it.
func upToMillis(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Millisecond)
	if whole.Before(t) {
		whole = whole.Add(time.Millisecond)
	}
	return whole
}

// leave puts the row on the wait list, from which its time, or an answer, brings it back.
func (r *row) leave(ctx context.Context, b *sheet.Boundary) verdict {
	t := r.task
	if t.Input == "" {
		t.Input = inputDigest(r.page.input.Values[t.Row-r.page.input.First])
	}
	err := r.s.away.add(ctx, &sheet.Wait{At: b.Wakes(), Row: t.Row, Index: t.Index, Input: t.Input, Event: b.Event()})
	if err != nil {
		return verdict{err: err}
	}
	return verdict{away: true}
}
