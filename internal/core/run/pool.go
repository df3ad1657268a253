package run

import (
	"sync"
	"time"

	"sluice/internal/core/sheet"
)

// pool decides which row goes next. A row is at work (it has one of `limit` places), turning (it has given its
// place up and waits for its turn at a provider, or for an identical call), or held (it waits for a deadline in the
// retry queue and has no goroutine). Rows that are due go before fresh ones (Q1).
type pool struct {
	run        func(*task) verdict
	limit      int
	maxWaiting int
	budget     time.Duration // idle residency in all (Q3)

	mu        sync.Mutex
	wg        sync.WaitGroup
	atWork    int
	turning   int
	squeezed  bool                    // memory is full: fewer rows are at work than should be
	unsaved   int                     // rows that have ended, whose end is not durable yet
	tasks     map[int64]sheet.Pending // at work or turning, by row, as they were when they were taken
	held      retryQueue
	cursor    int64 // first row never admitted
	end       int64
	wanted    bool // a turning row could go on if it had a place: no fresh row takes it
	draining  bool
	failed    error
	idleSince time.Time        // first moment at which every row was waiting
	changed   chan struct{}    // told when something happened that the loop must look at
	wakes     func() time.Time // when the first row on the wait list is due; zero: none by time
	stalled   func() bool      // whether all that wait for their turn wait behind a hold
	freed     func()           // told when a place has become free while rows are turning
}

// verdict is what became of a row that was run.
type verdict struct {
	held  bool  // wait until task.Until
	away  bool  // at a boundary: the row is on the wait list
	ended bool  // a row that has completed or failed, in this slice
	err   error // the slice must end
}

func newPool(run func(*task) verdict, set Settings, cursor, end int64) *pool {
	return &pool{
		run: run, limit: set.Concurrency, maxWaiting: set.MaxWaiting, budget: set.Budget.Limit,
		tasks: map[int64]sheet.Pending{}, cursor: cursor, end: end, changed: make(chan struct{}, 1), freed: func() {}, stalled: func() bool { return false },
		wakes: func() time.Time { return time.Time{} },
	}
}

func (p *pool) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// take picks the next row, under the lock: a due one, or a fresh one while the waiting set is not full (Q9). No more
// rows than there are places may be ahead of what is saved, so that a crash repeats few calls.
func (p *pool) take() *task {
	if p.draining || p.failed != nil || p.atWork >= p.limit || p.unsaved >= p.limit {
		return nil
	}
	var t *task
	if p.held.Len() > 0 {
		t = p.held.takeDue(time.Now())
	}
	for p.cursor < p.end && p.whereis(p.cursor) != absent {
		p.cursor++ // of a run whose failed rows are tried again: the cursor goes through all of them once more
	}
	if t == nil && !(p.squeezed && p.atWork+p.turning >= p.limit) && !(p.wanted && p.turning > 0) && p.cursor < p.end && p.held.Len()+p.turning < p.maxWaiting {
		t = &task{Pending: sheet.Pending{Row: p.cursor}}
		p.cursor++
	}
	if t == nil {
		return nil
	}
	p.atWork++
	p.tasks[t.Row] = sheet.Pending{Row: t.Row, Index: t.Index, Input: t.Input, Spent: t.Spent, Unsent: t.Unsent}
	return t
}

// feed starts rows while there is a place and a row for it, under the lock.
func (p *pool) feed() {
	for t := p.take(); t != nil; t = p.take() {
		p.wg.Add(1)
		go p.work(t)
	}
}

// work runs rows one after another until there is none to take.
func (p *pool) work(t *task) {
	defer p.wg.Done()
	for t != nil {
		v := p.run(t)
		p.mu.Lock()
		p.settle(t, v)
		t = p.take()
		if t == nil {
			p.leave()
		}
		p.mu.Unlock()
	}
}

// settle books what became of a row, under the lock.
func (p *pool) settle(t *task, v verdict) {
	p.atWork--
	if v.err == nil || v.ended {
		delete(p.tasks, t.Row) // else it is still pending
	}
	switch {
	case v.err != nil:
		if p.failed == nil {
			p.failed = v.err
		}
	case v.held:
		now := time.Now()
		t.heldAt = now
		p.held.add(t, now)
	case v.ended:
		p.unsaved++
		p.idleSince = time.Time{} // only a row that ends resets the idle clock (Q3)
	}
}

// saved hears that the ends of rows are durable.
func (p *pool) saved(rows int) {
	if rows == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsaved -= rows
	p.feed()
	p.tell()
}

// hasten lets the rows that are held for a scope go on at once: they have nothing to wait for any more.
func (p *pool) hasten(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.hasten(scope, time.Now())
	p.feed()
	p.tell()
}

// drain stops admitting; rows at work go on to their next saved state.
func (p *pool) drain(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
	if p.failed == nil {
		p.failed = err
	}
	p.tell()
}

// pending lists the rows that were admitted and have not ended, and the first row that was not admitted.
func (p *pool) pending() ([]sheet.Pending, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]sheet.Pending, 0, p.held.Len()+len(p.tasks))
	for _, t := range p.held.all() {
		list = append(list, t.Pending)
	}
	for _, t := range p.tasks {
		list = append(list, t)
	}
	return list, p.cursor
}

// step is what the loop does next.
type step struct {
	over bool      // nothing is at work, and nothing may be waited for
	at   time.Time // look again then; zero: when something changes
}

// next starts what can be started and says what to wait for. The slice is over when no row is at work or turning,
// and either none is left, or those that are left may not be waited for here (Q2, Q3).
func (p *pool) next() step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feed()
	if p.atWork+p.turning+p.unsaved > 0 && p.failed == nil || p.atWork+p.turning > 0 {
		if p.idleSince.IsZero() && p.unsaved <= 0 && p.waiting() {
			p.idleSince = time.Now()
		}
		at, _ := p.held.next(false)
		if !at.After(time.Now()) {
			at = time.Time{} // due, and there is no place: the row that frees one tells (Q4)
		}
		return step{at: sooner(at, p.listed())}
	}
	if p.draining || p.failed != nil {
		return step{over: true}
	}
	now := time.Now()
	if p.idleSince.IsZero() {
		p.idleSince = now
	}
	at, _ := p.held.next(true)
	if at = sooner(at, p.listed()); at.IsZero() || at.Sub(p.idleSince) > p.budget {
		return step{over: true}
	}
	return step{at: at}
}

// waiting reports, under the lock, whether every row waits for a deadline, in the retry queue or behind a hold.
func (p *pool) waiting() bool {
	return p.atWork == 0 && (p.turning == 0 || p.stalled())
}

// idleFrom is since when every row has been waiting, at the latest since the given moment.
func (p *pool) idleFrom(at time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.idleSince.IsZero() && p.idleSince.Before(at) {
		return p.idleSince
	}
	return at
}

// idle reports whether every row is waiting for a deadline.
func (p *pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting()
}

// earliest is the first deadline of the rows that wait.
func (p *pool) earliest() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held.next(false)
}

// wait sleeps until the step's time or a change, and returns how long that was.
func (p *pool) wait(s step, more <-chan time.Time, stop, done <-chan struct{}) {
	var timer <-chan time.Time
	if !s.at.IsZero() {
		t := time.NewTimer(max(time.Until(s.at), 0))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-p.changed:
	case <-timer:
	case <-more:
	case <-stop:
	case <-done:
	}
}
