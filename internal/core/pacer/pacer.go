package pacer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sluice/internal/core/table"
)

// Pacer hands out permits for scopes on behalf of one owner, a process. It is safe for concurrent use. Asks that
// arrive while a write is under way are served together by the next one.
type Pacer struct {
	// Alive tells whether an owner may still be at work: what a dead one held of a scope's concurrency is free at once.
	// Nil where only the lease can tell. Set it before the first use.
	Alive func(owner string) bool
	// Bulk says that waiting for permits is billed (bulk.go). Set it before the first use.
	Bulk bool

	tbl   table.Table
	owner string

	mu     sync.Mutex
	scopes map[string]*scope
}

// New returns a Pacer over tbl. The owner must be unique among everybody who shares the table.
func New(tbl table.Table, owner string) *Pacer {
	return &Pacer{tbl: tbl, owner: owner, scopes: make(map[string]*scope)}
}

// Want is what a caller asks of a scope.
type Want struct {
	N           int           // permits, at least 1
	Retries     int           // how many of them are for retries; those are served first (Q6)
	Rules       []Rule        // all must allow; none means not limited
	Concurrency int           // calls in flight over all owners; 0: not limited
	Adaptive    bool          // the provider declares nothing: Concurrency is where to begin (adapt.go)
	Longest     time.Duration // of the calls' timeouts
}

// Acquire asks for permits and never waits for one: it returns what can be dispatched within the horizon, or a
// denial (a Grant without permits) that says why and when the next one is to be had. Each permit holds a slot of the
// scope's concurrency until Done. An error is one of the store, or of ctx; then nothing was granted.
func (p *Pacer) Acquire(ctx context.Context, name string, w Want) (Grant, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, err
	}
	s := p.scope(name)
	if p.Bulk {
		w.Rules = inBulk(w.Rules)
	}
	if g, denied := s.denied(time.Now(), w); denied {
		return g, nil
	}
	a := &ask{Want: w, ctx: ctx, done: make(chan struct{})}
	s.enqueue(a)
	select {
	case <-a.done:
		return a.grant, a.err
	case <-ctx.Done():
		s.abandon(a)
		return Grant{}, ctx.Err()
	}
}

// Done gives back the slots of n permits, used or not.
func (p *Pacer) Done(name string, n int) { p.scope(name).release(n) }

// AwaitSlot waits for one of this owner's own calls to end, after a denial by Concurrency, and reports whether it is
// worth asking again. It waits for the horizon at most, and not at all if this owner has no call in flight.
func (p *Pacer) AwaitSlot(ctx context.Context, name string) bool {
	freed := p.scope(name).slotFreed()
	if freed == nil {
		return false
	}
	t := time.NewTimer(Horizon)
	defer t.Stop()
	select {
	case <-freed:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// Report takes note of an answer, once per response and before Done (H16). For a refusal it returns until when the
// scope is held, and has shared that with all owners unless it returns an error; even then this owner keeps to it and
// shares it with its next write. A success costs no write: the next Acquire carries it.
func (p *Pacer) Report(ctx context.Context, name string, o Observation) (time.Time, error) {
	s := p.scope(name)
	if !o.Limited {
		s.answered(o)
		return time.Time{}, nil
	}
	r := &report{Observation: o, done: make(chan struct{})}
	if until, known := s.report(time.Now(), r); known {
		return until, nil
	}
	select {
	case <-r.done:
		return r.until, r.err
	case <-ctx.Done(): // the write goes on
		return s.heldUntil(), ctx.Err()
	}
}

// Check reports whether the permit may still be used, against state that is at most maxStale old (H12). A permit whose
// time is over, or whose scope has since been held past its moment, is void, and a fresh one is to be acquired.
func (p *Pacer) Check(ctx context.Context, permit Permit) bool {
	return p.scope(permit.Scope).check(ctx, permit)
}

// NextFree is when the scope can be asked again, as far as this owner knows, and why not before; zero is at once.
func (p *Pacer) NextFree(name string) (time.Time, Reason, Cause) {
	return p.scope(name).nextFree(time.Now())
}

// Peek reads a scope's state, for display and Forecast. A scope that nobody used is empty.
func (p *Pacer) Peek(ctx context.Context, name string) (State, error) {
	_, s, err := load(ctx, p.tbl, name)
	return s, err
}

// Release gives back the concurrency that is leased and not in use. A process that is about to be frozen or to end
// calls it, so that others need not wait for the leases to expire.
func (p *Pacer) Release(ctx context.Context) error {
	p.mu.Lock()
	all := make([]*scope, 0, len(p.scopes))
	for _, s := range p.scopes {
		all = append(all, s)
	}
	p.mu.Unlock()
	var errs []error
	for _, s := range all {
		errs = append(errs, s.shrink(ctx))
	}
	return errors.Join(errs...)
}

func (p *Pacer) scope(name string) *scope {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.scopes[name]
	if !ok {
		s = &scope{store: store{tbl: p.tbl, owner: p.owner, name: name, alive: p.Alive}, bulk: p.Bulk}
		p.scopes[name] = s
	}
	return s
}

// ask is a Want in the queue of its scope.
type ask struct {
	Want
	ctx       context.Context
	done      chan struct{} // closed when grant and err are set
	grant     Grant
	err       error
	abandoned bool
}

func (a *ask) sameLimits(b *ask) bool {
	return a.Concurrency == b.Concurrency && a.Adaptive == b.Adaptive && slices.Equal(a.Rules, b.Rules)
}

// report is a refusal in the queue of its scope.
type report struct {
	Observation
	done  chan struct{}
	until time.Time
	err   error
}
