package run

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Bounds of what is kept in memory and in the journal.
const (
	saving       = 4       // pages being written at once; more would only hold memory
	keptPages    = 24      // pages kept in memory while only held rows are open on them
	restingPages = 4       // pages kept in memory while all their open rows wait at boundaries
	journalCut   = 4 << 20 // bytes of journal after which open pages are saved, so that it can be cut
)

// pages keeps the pages that are being worked on: their input, and what their rows have come to. A page whose rows
// have all ended is saved as a result page and dropped.
type pages struct {
	job      *Job
	st       *store.Store
	epoch    int64
	journal  *sheet.Journal
	manifest []intake.PageRef

	mu      sync.Mutex
	open    map[int]*openPage
	begun   int64        // rows before this were admitted by earlier slices, which may have saved their pages
	touched map[int]bool // pages that may have been saved besides
	resting []*openPage  // pages whose open rows all wait at boundaries, the one that rests longest ahead
	slots   chan struct{}
	writes  sync.WaitGroup
	failed  error
	onFail  func(error)
}

// openPage is a page at work. Its mutex guards state; the input is read-only.
type openPage struct {
	number int
	ready  chan struct{} // closed when loaded, or failed with err
	err    error
	input  intake.Page

	writing sync.Mutex // one write at a time, so that an older state never replaces a newer one

	weight atomic.Int64 // bytes of the cells that came to it in this slice

	mu     sync.Mutex
	state  *sheet.Page
	open   int             // rows that have not ended
	dirty  *sheet.Position // the first journal group that the saved page does not hold
	last   sheet.Ticket    // of the last entry
	inWork int             // rows at work on it, guarded by pages.mu
}

func newPages(job *Job, st *store.Store, epoch int64, j *sheet.Journal, onFail func(error)) *pages {
	return &pages{
		job: job, st: st, epoch: epoch, journal: j, manifest: job.manifest, open: map[int]*openPage{}, touched: map[int]bool{},
		slots: make(chan struct{}, saving), onFail: onFail,
	}
}

// pageOf is the number of the page that holds a row.
func pageOf(manifest []intake.PageRef, row int64) int {
	return sort.Search(len(manifest), func(i int) bool { return manifest[i].First > row }) - 1
}

// enter returns the loaded page of a row, and keeps it loaded until leave.
func (p *pages) enter(ctx context.Context, row int64) (*openPage, error) {
	n := pageOf(p.manifest, row)
	p.mu.Lock()
	page := p.loading(ctx, n)
	page.inWork++
	if first := row == p.manifest[n].First; first && n+1 < len(p.manifest) {
		p.loading(ctx, n+1) // read ahead
	}
	p.mu.Unlock()
	select {
	case <-page.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return page, page.err
}

func (p *pages) leave(page *openPage) {
	p.mu.Lock()
	page.inWork--
	p.mu.Unlock()
}

// loading returns the page, and starts to load it if it is not there, under the lock.
func (p *pages) loading(ctx context.Context, n int) *openPage {
	if page, ok := p.open[n]; ok {
		return page
	}
	page := &openPage{number: n, ready: make(chan struct{})}
	p.open[n] = page
	saved := p.touched[n] || p.manifest[n].First < p.begun
	p.evict()
	p.writes.Add(1)
	go func() {
		defer p.writes.Done()
		defer close(page.ready)
		page.err = p.load(ctx, page, saved)
	}()
	return page
}

func (p *pages) load(ctx context.Context, page *openPage, saved bool) error {
	ref := p.manifest[page.number]
	if page.state == nil {
		page.state = sheet.NewPage(page.number, ref.First, ref.Rows)
		if saved {
			state, err := sheet.LoadPage(ctx, p.st, p.job.Run.ID, page.number)
			if err != nil && !errors.Is(err, table.ErrNotFound) {
				return err
			}
			if err == nil {
				page.state = state
			}
		}
	}
	if len(page.state.Rows) != ref.Rows {
		return fmt.Errorf("result page %d holds %d rows, the sealed input page has %d", page.number, len(page.state.Rows), ref.Rows)
	}
	if page.open = page.state.Open(); page.open == 0 {
		return nil // its rows are only gone past
	}
	var err error
	page.input, err = intake.ReadPage(ctx, p.st, p.job.Run.ID, ref, page.number)
	return err
}

// replayed puts in a page whose state was rebuilt from the journal.
func (p *pages) replayed(past *pastPage) {
	state := past.state
	page := &openPage{number: state.Number, ready: make(chan struct{}), state: state, open: state.Open(), dirty: past.dirty}
	p.mu.Lock()
	p.touched[state.Number] = true
	if past.whole { // it is saved as it is, and nothing comes to it any more
		p.mu.Unlock()
		return
	}
	p.open[state.Number] = page
	p.mu.Unlock()
	if page.open == 0 {
		close(page.ready)
		p.save(page, true)
		return
	}
	p.writes.Add(1)
	go func() {
		defer p.writes.Done()
		defer close(page.ready)
		page.err = p.load(context.Background(), page, false)
	}()
}

// append writes an entry to the journal and applies it to the page. A page that has come to its end is saved.
func (p *pages) append(ctx context.Context, page *openPage, e *sheet.Entry) (sheet.Ticket, error) {
	if err := p.stow(ctx, page, e); err != nil {
		return sheet.Ticket{}, err
	}
	page.mu.Lock()
	t, err := p.journal.Append(e)
	if err == nil {
		err = page.state.Apply(e, len(p.job.Map.Columns))
	}
	if err != nil {
		page.mu.Unlock()
		return t, err
	}
	if page.dirty == nil {
		at := t.At()
		page.dirty = &at
	}
	page.last = t
	ended := false
	if e.Kind == sheet.RowEnded {
		page.open--
		ended = page.open == 0
	}
	page.mu.Unlock()
	if ended {
		p.save(page, true)
	}
	return t, nil
}

func (page *openPage) loaded() bool {
	select {
	case <-page.ready:
		return page.err == nil
	default:
		return false
	}
}
