package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
)

// row is one pass over a row's cells, from the first to the end of the row or to a hold. What earlier passes have
// recorded is taken, not computed or called again.
type row struct {
	s     *slice
	task  *task
	page  *openPage
	state *sheet.Row
	env   mapspec.Env
	cells sheet.Cells        // of this pass; nil: carried by a receipt, or not computed yet
	tail  *sheet.Receipt     // the last call's result, which is saved together with the row's end
	made  []sheet.FinishStep // of `finish`: what became of the steps, in this pass
}

// runRow works on a row until it ends or waits.
func (s *slice) runRow(t *task) verdict {
	page, err := s.pages.enter(s.ctx, t.Row)
	if err != nil {
		return verdict{err: err}
	}
	v := s.runOn(page, t)
	s.pages.leave(page)
	if v.away {
		s.pages.rest(page)
	}
	return v
}

func (s *slice) runOn(page *openPage, t *task) verdict {
	if page.state.Row(t.Row).Status != sheet.RowOpen {
		return verdict{} // ended before a crash: nothing is left to do, and its page may have no input loaded
	}
	r, err := s.newRow(t, page)
	if err != nil {
		return verdict{err: err}
	}
	if !t.heldAt.IsZero() {
		s.tally.heldMs.Add(time.Since(t.heldAt).Milliseconds())
	}
	defer s.blank.Put(r)
	return r.run(s.ctx)
}

func (s *slice) newRow(t *task, page *openPage) (*row, error) {
	i := int(t.Row - page.input.First)
	t.Index = page.input.Index[i]
	if t.Input != "" && !strings.HasPrefix(t.Input, inputDigest(page.input.Values[i])) { // it was longer once
		return nil, &ChangedError{Page: page.number, Row: t.Index}
	}
	r := s.blankRow()
	r.task, r.page, r.state, r.tail, r.made = t, page, &page.state.Rows[i], nil, nil
	page.input.Fill(r.env.Row, i, s.job.Run.Sealed.Columns)
	r.env.Index = t.Index
	return r, nil
}

// blankRow returns a row to fill, with the maps of one that is done: making them anew for every row would be a good
// part of what a row costs.
func (s *slice) blankRow() *row {
	if r, ok := s.blank.Get().(*row); ok {
		clear(r.env.Row)
		clear(r.env.Cells)
		clear(r.cells)
		return r
	}
	return &row{
		s:     s,
		env:   mapspec.Env{Row: map[string]any{}, Cells: map[string]any{}, Vars: s.job.Run.Vars},
		cells: make(sheet.Cells, len(s.job.Map.Columns)),
	}
}

// inputDigest is what a held row remembers of the input that it was admitted with (H5).
func inputDigest(values []any) string {
	b, err := value.Encode(values)
	if err != nil {
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

func (r *row) run(ctx context.Context) verdict {
	for c := range r.s.job.Map.Columns {
		column := &r.s.job.Map.Columns[c]
		res := r.cell(ctx, c, column)
		switch {
		case res.err != nil:
			return verdict{err: res.err}
		case res.hold != nil:
			return r.wait(ctx, res)
		case res.away != nil:
			return r.leave(ctx, res.away)
		case res.fail != nil:
			return r.end(ctx, sheet.FaultOf(column.Name, res.fail))
		}
		r.env.Cells[column.Name] = res.value
	}
	return r.end(ctx, nil)
}

// wait puts the row on hold. The number of its call's next attempt is durable before that attempt can be made (R6).
func (r *row) wait(ctx context.Context, res result) verdict {
	t := r.task
	if res.tried != nil {
		ticket, err := r.s.pages.append(ctx, r.page, res.tried)
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err != nil {
			return verdict{err: err}
		}
	}
	t.Until, t.Scope, t.Why = res.hold.until, res.hold.scope, res.hold.why
	if t.Input == "" {
		t.Input = inputDigest(r.page.input.Values[t.Row-r.page.input.First])
	}
	if !r.s.stopping() {
		t.residency.Wait(time.Now(), t.Until, r.s.set.Budget)
	}
	t.Spent = t.residency.Spent
	if r.s.stopping() && !t.Until.After(time.Now()) {
		t.Until, t.Scope, t.Why = time.Time{}, "", call.Why{} // sent back by a slice that drains: not held by anybody
	}
	return verdict{held: true}
}

// end records the row's end. Nothing depends on it before its page is saved, so nobody waits for it here.
func (r *row) end(ctx context.Context, fault *sheet.Fault) verdict {
	if fault != nil && r.tail != nil { // the row may be run again, and then not make this call again
		rec := sheet.Entry{Kind: sheet.Received, Row: r.task.Row, Receipt: *r.tail}
		if _, err := r.s.pages.append(ctx, r.page, &rec); err != nil {
			return verdict{err: err}
		}
		r.cells[r.tail.Column], r.tail = nil, nil
	}
	e := &sheet.Entry{Kind: sheet.RowEnded, Row: r.task.Row, Fault: fault}
	if r.tail != nil {
		e.Column, e.Step, e.Rejected, e.Shared = r.tail.Column, r.tail.Step, r.tail.Rejected, r.tail.Shared
	}
	e.Cells = r.cells
	if _, err := r.s.pages.append(ctx, r.page, e); err != nil {
		return verdict{err: err}
	}
	if fault != nil && r.s.job.Map.FailFast {
		return verdict{ended: true, err: &RowError{Index: r.task.Index, Fault: fault}}
	}
	return verdict{ended: true}
}

// receive makes a call's receipt durable. The receipt of the row's last call travels with the row's end instead:
// nothing of this row depends on it before.
func (r *row) receive(ctx context.Context, rec sheet.Receipt, last bool) error {
	r.s.tally.logical.Add(1)
	r.task.residency, r.task.Unsent, r.task.Spent = noResidency, time.Time{}, false
	if last {
		r.tail = &rec
		return nil
	}
	ticket, err := r.s.pages.append(ctx, r.page, &sheet.Entry{Kind: sheet.Received, Row: r.task.Row, Receipt: rec})
	if err != nil {
		return err
	}
	return ticket.Wait(ctx)
}

// What the row's pages hold of it is read under the page's lock: a resolver does several things at once.

func (r *row) receipt(column, step int) *sheet.Receipt {
	r.page.mu.Lock()
	defer r.page.mu.Unlock()
	return copied(r.state.Receipt(column, step))
}

func (r *row) cursor(column, step int) *sheet.Cursor {
	r.page.mu.Lock()
	defer r.page.mu.Unlock()
	return copied(r.state.Cursor(column, step))
}

func (r *row) boundary(column, step int) *sheet.Boundary {
	r.page.mu.Lock()
	defer r.page.mu.Unlock()
	return copied(r.state.Boundary(column, step))
}

func copied[T any](v *T) *T {
	if v == nil {
		return nil
	}
	c := *v
	return &c
}

// exprError is the failure of one of the column's own expressions.
func exprError(err error) *call.Error { return &call.Error{Code: "EXPRESSION", Message: err.Error()} }
