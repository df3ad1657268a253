package run

import (
	"context"
	"fmt"
	"slices"

	"sluice/internal/core/sheet"
)

// save writes the page's state in the background. Its last entry is durable before the page is, so that the counts,
// which come from the journal, never miss a row that a page holds.
func (p *pages) save(page *openPage, drop bool) {
	p.slots <- struct{}{}
	p.writes.Add(1)
	go func() {
		defer p.writes.Done()
		defer func() { <-p.slots }()
		if err := p.write(page, drop); err != nil {
			p.fail(fmt.Errorf("%w: %w", sheet.ErrJournal, err))
		}
	}()
}

func (p *pages) write(page *openPage, drop bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), durableWrite)
	defer cancel()
	page.writing.Lock()
	defer page.writing.Unlock()
	page.mu.Lock()
	last, dirty := page.last, page.dirty
	framed, err := page.state.Encode()
	page.mu.Unlock()
	if err != nil {
		return err
	}
	if err := last.Wait(ctx); err != nil {
		return err
	}
	if err := sheet.SavePage(ctx, p.st, p.job.Run.ID, p.epoch, page.number, framed); err != nil {
		return err
	}
	p.mu.Lock()
	p.touched[page.number] = true // before the page is clean, and may be dropped
	p.mu.Unlock()
	page.mu.Lock()
	if page.last == last && page.dirty == dirty {
		page.dirty = nil
	}
	page.mu.Unlock()
	if drop {
		p.drop(page)
	}
	return nil
}

// drop takes a page out of memory: one that has come to its end, or one that is saved and on which nothing is at work.
func (p *pages) drop(page *openPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page.mu.Lock()
	ended, clean := page.open == 0, page.dirty == nil
	page.mu.Unlock()
	if p.open[page.number] == page && (ended || clean && page.inWork == 0) {
		delete(p.open, page.number)
	}
}

// rest hears that a row of the page has gone to the wait list. When all others have as well, nothing is at work on the page,
// perhaps for days: a few such pages are kept, because the next answer may come at once, the others are saved and dropped.
func (p *pages) rest(page *openPage) {
	if !p.rests(page) {
		return
	}
	p.mu.Lock()
	p.resting = append(slices.DeleteFunc(p.resting, func(known *openPage) bool { return known == page }), page)
	var out *openPage
	if len(p.resting) > restingPages {
		out, p.resting = p.resting[0], p.resting[1:]
	}
	p.mu.Unlock()
	if out != nil && p.rests(out) {
		p.save(out, true)
	}
}

func (p *pages) rests(page *openPage) bool {
	p.mu.Lock()
	busy := page.inWork > 0 || p.open[page.number] != page
	p.mu.Unlock()
	if busy {
		return false
	}
	page.mu.Lock()
	defer page.mu.Unlock()
	return page.open > 0 && page.state.Rests()
}

func (p *pages) fail(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.onFail(err)
}

// evict drops pages on which nothing is at work and whose state is saved, when many are kept, under the lock.
func (p *pages) evict() {
	if len(p.open) <= keptPages {
		return
	}
	for n, page := range p.open {
		if page.inWork > 0 || !page.loaded() {
			continue
		}
		page.mu.Lock()
		clean := page.dirty == nil
		page.mu.Unlock()
		if clean {
			delete(p.open, n)
		}
	}
}

// from is the position from which the journal is needed.
func (p *pages) from() sheet.Position {
	from := p.journal.Next()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.open {
		page.mu.Lock()
		if page.dirty != nil && page.dirty.Before(from) {
			from = *page.dirty
		}
		page.mu.Unlock()
	}
	return from
}

// spill saves the open pages that the journal is still needed for, oldest first, so that it can be cut.
func (p *pages) spill(keep int) error {
	for _, page := range p.oldest(keep) {
		if err := p.write(page, false); err != nil {
			return fmt.Errorf("%w: %w", sheet.ErrJournal, err)
		}
	}
	return nil
}

// oldest lists the loaded open pages with unsaved entries, but for the `keep` newest.
func (p *pages) oldest(keep int) []*openPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*openPage
	for _, page := range p.open {
		if page.loaded() && page.unsaved() {
			list = append(list, page)
		}
	}
	slices.SortFunc(list, func(a, b *openPage) int { return a.number - b.number })
	return list[:max(len(list)-keep, 0)]
}

func (page *openPage) unsaved() bool {
	page.mu.Lock()
	defer page.mu.Unlock()
	return page.dirty != nil && page.open > 0
}

// settle waits for the pages that are being saved.
func (p *pages) settle() error {
	p.writes.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
