package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// RowReader reads a run's rows page by page. What the journal of a shard says beyond its pages is read when a page of that
// shard is asked for, and kept until one of another shard is.
type RowReader struct {
	job   *Job
	ports Ports
	shard int
	live  *liveShard
}

// Reader returns a reader of the rows as they stand from now on.
func (j *Job) Reader(p Ports) *RowReader {
	return &RowReader{job: j, ports: p}
}

// RowQuery asks for rows.
type RowQuery struct {
	From   int64  // place in the sheet, from 0
	Status string // only rows that stand like this; empty: all
	Most   int    // rows; 0: no bound but the page
}

// Page returns the rows that are asked for, of one sealed page: that of q.From. It also returns the place to go on from,
// which is the number of rows of the sheet when there is nothing more. With an error it returns the rows before it.
func (r *RowReader) Page(ctx context.Context, q RowQuery) (rows []*RowView, next int64, err error) {
	j := r.job
	if q.From < 0 || q.From >= j.Run.Sealed.Rows || len(j.manifest) == 0 {
		return nil, j.Run.Sealed.Rows, nil
	}
	n := pageOf(j.manifest, q.From)
	live, err := r.shardOf(ctx, n)
	if err != nil {
		return nil, q.From, err
	}
	state, err := r.state(ctx, n, live)
	if err != nil {
		return nil, q.From, err
	}
	var input *intake.Page
	for place := q.From; place < state.First+int64(len(state.Rows)); place++ {
		i := int(place - state.First)
		if status, _ := j.standing(state, i, live); q.Status != "" && status != q.Status {
			continue
		}
		if q.Most > 0 && len(rows) == q.Most {
			return rows, place, nil
		}
		if input == nil { // pages without a row that is asked for cost only one read
			if input, err = r.input(ctx, n); err != nil {
				return rows, place, err
			}
		}
		v, err := j.view(ctx, r.ports, input, state, i, live)
		if err != nil {
			return rows, place, err
		}
		rows = append(rows, v)
	}
	return rows, state.First + int64(len(state.Rows)), nil
}

func (r *RowReader) input(ctx context.Context, n int) (*intake.Page, error) {
	ref := r.job.manifest[n]
	input, err := intake.ReadPage(ctx, r.ports.Store, r.job.Run.ID, ref, n)
	if err == nil && len(input.Values) != ref.Rows {
		err = &intake.PageError{Page: n, Reason: "it is of another size"}
	}
	return &input, err
}

// state is the page as far as it has come; a run that is completed has no page that is not whole.
func (r *RowReader) state(ctx context.Context, n int, live *liveShard) (*sheet.Page, error) {
	j, ref := r.job, r.job.manifest[n]
	var state *sheet.Page
	var err error
	if page := live.pages[n]; page != nil {
		state = page.state
	} else if state, err = sheet.LoadPage(ctx, r.ports.Store, j.Run.ID, n); errors.Is(err, table.ErrNotFound) {
		state = sheet.NewPage(n, ref.First, ref.Rows)
	} else if err != nil {
		return nil, err
	}
	switch {
	case len(state.Rows) != ref.Rows:
		return nil, &intake.PageError{Page: n, Reason: "its result page is of another size"}
	case j.Run.Whole() && state.Open() > 0:
		return nil, fmt.Errorf("%w: result page %d is missing, or has rows that have not ended", ErrIncomplete, n)
	}
	return state, nil
}

// liveShard is what a shard's checkpoint and journal say beyond the pages.
type liveShard struct {
	pages map[int]*pastPage
	held  map[int64]*sheet.Pending
	owned bool // a slice is at work on it
}

// shardOf reads the shard that a page belongs to.
func (r *RowReader) shardOf(ctx context.Context, page int) (*liveShard, error) {
	shard := 0
	for _, end := r.job.shardPages(shard); page >= end; _, end = r.job.shardPages(shard) {
		shard++
	}
	if r.live != nil && r.shard == shard {
		return r.live, nil
	}
	cp, err := sheet.LoadCheckpoint(ctx, r.ports.Store, r.job.Run.ID, shard)
	if errors.Is(err, table.ErrNotFound) {
		return &liveShard{}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := r.job.replay(ctx, cp, shard, r.ports)
	if err != nil {
		return nil, err
	}
	l := &liveShard{pages: x.pages, held: map[int64]*sheet.Pending{}, owned: r.ports.owned(cp, time.Now())}
	for i := range cp.Pending {
		l.held[cp.Pending[i].Row] = &cp.Pending[i]
	}
	r.shard, r.live = shard, l
	return l, nil
}
