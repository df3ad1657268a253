package run

import (
	"context"
	"errors"
	"slices"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// sweepChunk is how many items of the wait list are looked at together after a crash.
const sweepChunk = 10_000

// openAway learns what is on the list. Where the slice before has ended in order its checkpoint says how many rows that is.
// Otherwise they are counted, and items are removed whose rows have gone on: a process that dies may leave some, and they
// would keep the shard from being done until their time.
func (s *slice) openAway(ctx context.Context, past *past) error {
	a := s.away
	a.exact = a.counts.Settled
	if a.exact {
		for w, err := range sheet.Waits(ctx, a.st, a.run, a.shard, "") {
			a.next = w.At
			return err
		}
		return nil
	}
	a.counts = sheet.Waiting{}
	var chunk []sheet.Wait
	for w, err := range sheet.Waits(ctx, a.st, a.run, a.shard, "") {
		if err != nil {
			return err
		}
		if chunk = append(chunk, w); len(chunk) == sweepChunk {
			if err := s.sweep(ctx, past, chunk); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
	}
	return s.sweep(ctx, past, chunk)
}

// sweep goes through some items, in the order of their rows, so that each page is read once.
func (s *slice) sweep(ctx context.Context, past *past, items []sheet.Wait) error {
	slices.SortFunc(items, func(a, b sheet.Wait) int { return int(a.Row - b.Row) })
	var page *sheet.Page
	for i := range items {
		w := &items[i]
		if page == nil || page.Row(w.Row) == nil {
			var err error
			if page, err = past.look(ctx, s.ports, w.Row); err != nil {
				return err
			}
		}
		if page.Row(w.Row) == nil || !stale(page.Row(w.Row), w) {
			s.away.count(w.Event, 1)
			s.away.next = sooner(s.away.next, w.At)
			continue
		}
		if err := sheet.Forget(ctx, s.away.st, s.away.run, s.away.shard, w.Key()); err != nil {
			return err
		}
	}
	return nil
}

// stale reports whether the row does not wait at this item any more. A sleep is left alone: its item wakes the row in time,
// and then it goes.
func stale(row *sheet.Row, w *sheet.Wait) bool {
	if row.Status != sheet.RowOpen {
		return true
	}
	passed := false
	for i := range row.Boundaries {
		b := &row.Boundaries[i]
		if key := (&sheet.Wait{At: b.Wakes(), Row: w.Row}); key.Key() != w.Key() {
			continue
		}
		if row.Receipt(b.Column, b.Step) == nil {
			return false
		}
		passed = true
	}
	return passed
}

// look is the state of a row's page, as the journal and the pages say.
func (x *past) look(ctx context.Context, p Ports, row int64) (*sheet.Page, error) {
	n := pageOf(x.job.manifest, row)
	if page := x.pages[n]; page != nil {
		return page.state, nil
	}
	page, err := sheet.LoadPage(ctx, p.Store, x.job.Run.ID, n)
	if errors.Is(err, table.ErrNotFound) {
		ref := x.job.manifest[n]
		return sheet.NewPage(n, ref.First, ref.Rows), nil
	}
	return page, err
}
