package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// past is what earlier slices of the shard have left since the last cut of the journal.
type past struct {
	counts sheet.Counts
	stats  sheet.Stats
	pages  map[int]*pastPage
	reach  int64           // behind the last row that was admitted, as far as is known
	ends   map[int64]int64 // by epoch: where its journal ended when it was read
	job    *Job
}

type pastPage struct {
	state *sheet.Page
	dirty *sheet.Position
	whole bool // saved with all rows ended, and none reopened since
}

// replay rebuilds the pages that the journal speaks of: their saved state, and every entry since. It is the same
// for a park and for a crash. Only read, so that a view of a run at work can use it too.
func (j *Job) replay(ctx context.Context, cp *sheet.Checkpoint, shard int, p Ports) (*past, error) {
	x := &past{counts: cp.Counts, stats: cp.Stats, reach: max(cp.Reach, cp.Cursor), pages: map[int]*pastPage{}, ends: map[int64]int64{}, job: j}
	counted := map[int64]bool{}
	for g, err := range sheet.Replay(ctx, p.Store, j.Run.ID, shard, cp.From) {
		if err != nil {
			return nil, err
		}
		if !cp.Reads(g.At) {
			continue
		}
		x.ends[g.At.Epoch] = g.At.Seq + 1
		fresh := !g.At.Before(cp.Counted)
		if fresh {
			slices := max(x.stats.Slices, g.Stats.Slices)
			x.stats = g.Stats
			x.stats.Slices = slices
		}
		for i := range g.Entries {
			e := &g.Entries[i]
			if err := x.apply(ctx, p, e, g.At); err != nil {
				return nil, err
			}
			switch {
			case fresh && e.Kind == sheet.RowEnded && !counted[e.Row]:
				counted[e.Row] = true
				x.count(e)
			case fresh && e.Kind == sheet.Reopened:
				counted[e.Row] = false
				x.counts.Failed--
			}
		}
	}
	return x, nil
}

// closed is where the journals end that were read, of all slices before this one.
func (x *past) closed(cp *sheet.Checkpoint) []sheet.Position {
	var closed []sheet.Position
	for epoch := cp.From.Epoch; epoch < cp.Epoch; epoch++ {
		closed = append(closed, sheet.Position{Epoch: epoch, Seq: x.ends[epoch]})
	}
	return closed
}

func (x *past) count(e *sheet.Entry) {
	if e.Fault != nil {
		x.counts.Failed++
		return
	}
	x.counts.Completed++
}

func (x *past) apply(ctx context.Context, p Ports, e *sheet.Entry, at sheet.Position) error {
	if e.Row < 0 || e.Row >= x.job.Run.Sealed.Rows {
		return fmt.Errorf("journal: an entry of row %d, the run has %d", e.Row, x.job.Run.Sealed.Rows)
	}
	x.reach = max(x.reach, e.Row+1)
	n := pageOf(x.job.manifest, e.Row)
	page := x.pages[n]
	if page == nil {
		state, err := x.load(ctx, p, n)
		if err != nil {
			return err
		}
		page = &pastPage{state: state, whole: state.Open() == 0}
		x.pages[n] = page
	}
	if page.dirty == nil {
		page.dirty = &at
	}
	page.whole = page.whole && e.Kind != sheet.Reopened
	return page.state.Apply(e, len(x.job.Map.Columns))
}

func (x *past) load(ctx context.Context, p Ports, n int) (*sheet.Page, error) {
	ref := x.job.manifest[n]
	state, err := sheet.LoadPage(ctx, p.Store, x.job.Run.ID, n)
	if errors.Is(err, table.ErrNotFound) {
		return sheet.NewPage(n, ref.First, ref.Rows), nil
	}
	if err == nil && len(state.Rows) != ref.Rows {
		return nil, &intake.PageError{Page: n, Reason: fmt.Sprintf("its result page holds %d rows, the sealed page %d", len(state.Rows), ref.Rows)}
	}
	return state, err
}

// ended reports whether the row is known to have ended.
func (x *past) ended(row int64) bool {
	page := x.pages[pageOf(x.job.manifest, row)]
	return page != nil && page.state.Row(row).Status != sheet.RowOpen
}

// remember puts the results that identical calls may share into the memo.
func (x *past) remember(memo *call.Memo) {
	for _, page := range x.pages {
		rememberPage(memo, page.state)
	}
}

// recentPages is how many of the last saved pages a slice reads for results that identical calls may share.
const recentPages = 16

// recall reads the newest saved pages of the shard into the memo: without them, a slice that goes on after a park or
// a crash would pay again for a call that an identical row of an earlier page has made.
func (x *past) recall(ctx context.Context, p Ports, cp *sheet.Checkpoint, memo *call.Memo) error {
	if !x.job.sharesCalls() || x.reach == 0 {
		return nil
	}
	last := pageOf(x.job.manifest, x.reach-1)
	for n := last; n >= cp.FirstPage && n > last-recentPages; n-- {
		if x.pages[n] != nil {
			continue // its journal has been read
		}
		page, err := sheet.LoadPage(ctx, p.Store, x.job.Run.ID, n)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		rememberPage(memo, page)
	}
	return nil
}

func rememberPage(memo *call.Memo, page *sheet.Page) {
	for i := range page.Rows {
		row := &page.Rows[i]
		for _, rec := range row.Receipts {
			switch {
			case rec.Shared == "":
			case rec.Rejected:
				memo.Put(rec.Shared, json.RawMessage(rejected))
			case rec.Value != nil:
				memo.Put(rec.Shared, rec.Value)
			case row.Status != sheet.RowOpen && row.Cells[rec.Column] != nil:
				memo.Put(rec.Shared, row.Cells[rec.Column])
			}
		}
	}
}

// hand gives the rebuilt pages to the slice.
func (x *past) hand(p *pages) {
	numbers := make([]int, 0, len(x.pages))
	for n := range x.pages {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		p.replayed(x.pages[n])
	}
}
