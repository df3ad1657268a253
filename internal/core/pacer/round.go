package pacer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/hold"
	"sluice/internal/core/table"
)

const (
	// roundTimeout bounds one round of reading and writing. It outlives the callers, whose cancellation must not
	// leave others without their answer.
	roundTimeout = 15 * time.Second
	// maxUncertain is how many writes with an unknown end one round survives.
	maxUncertain = 5
	// maxLead bounds how far a slow store pushes permits away. Without that push, permits would be void when the write
	// that grants them ends.
	maxLead = 2 * time.Second
	// maxPause bounds the pause after a lost race.
	maxPause = 64 * time.Millisecond
)

// store is the cached copy of a scope's item. Only the serving goroutine uses what changes in it.
type store struct {
	tbl         table.Table
	owner, name string

	version int64 // 0: there is no item
	state   State
	cached  bool
	fresh   bool          // read or written in this round
	seq     int64         // of this owner's writes
	cost    time.Duration // of a write, smoothed
}

func scopeKey(name string) table.Key { return table.Key{Part: "pace/" + name, Sort: "state"} }

func load(ctx context.Context, tbl table.Table, name string) (int64, State, error) {
	item, err := tbl.Get(ctx, scopeKey(name))
	if errors.Is(err, table.ErrNotFound) {
		return 0, State{}, nil
	}
	if err != nil {
		return 0, State{}, err
	}
	s, err := decode(item.Data)
	return item.Version, s, err
}

func (st *store) reload(ctx context.Context) error {
	start := time.Now()
	v, s, err := load(ctx, st.tbl, st.name)
	if err != nil {
		st.cached = false
		return err
	}
	if st.cost == 0 { // the first guess of what a write takes
		st.cost = time.Since(start)
	}
	st.version, st.state, st.cached, st.fresh = v, s, true, true
	return nil
}

// put stores next over the cached version. Each write bears its writer and a sequence number, so that a write whose
// end is unknown (or that an adapter repeated, and then found in its own way) is recognised when it is read back. If
// somebody has written over it meanwhile it counts as lost: its permits stay charged, and nobody uses them.
func (st *store) put(ctx context.Context, next State) (written bool, err error) {
	st.seq++
	next.By = fmt.Sprintf("%s#%d", st.owner, st.seq)
	data, err := encode(next)
	if err != nil {
		return false, err
	}
	cond := table.VersionIs(st.version)
	if st.version == 0 {
		cond = table.Absent()
	}
	item := table.Item{Key: scopeKey(st.name), Version: st.version + 1, Data: data, Expires: next.expiry()}
	start := time.Now()
	err = st.tbl.Put(ctx, item, cond)
	st.took(time.Since(start))
	if err == nil {
		st.version, st.state, st.cached, st.fresh = item.Version, next, true, true
		return true, nil
	}
	st.cached = false
	if errors.Is(err, table.ErrTooLarge) || errors.Is(err, table.ErrInvalid) {
		return false, err
	}
	if lerr := st.reload(ctx); lerr != nil {
		return false, errors.Join(err, lerr)
	}
	if st.state.By == next.By {
		return true, nil
	}
	if errors.Is(err, table.ErrConflict) {
		return false, nil
	}
	return false, &uncertainError{err}
}

// took smooths what a write takes: up at once, because a permit that comes late is void, and down slowly.
func (st *store) took(d time.Duration) {
	if d > st.cost {
		st.cost = d
		return
	}
	st.cost = (7*st.cost + d) / 8
}

// expected is what the next write is allowed to take.
func (st *store) expected() time.Duration { return min(st.cost*3/2, maxLead) }

// uncertainError is a write that may have happened, but was not found.
type uncertainError struct{ error }

func (e *uncertainError) Unwrap() error { return e.error }

// round serves a batch with one write, repeated until it wins its race.
func (s *scope) round(b batch) {
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	s.fresh = false
	uncertain := 0
	for try := 0; ; try++ {
		if !s.cached {
			if err := s.reload(ctx); err != nil {
				s.fail(b, err)
				return
			}
		}
		next, g, write := s.apply(time.Now(), b)
		if !write {
			if g.Reason == Concurrency && !s.fresh {
				s.cached = false // others may have given slots back
				continue
			}
			s.finish(b, g)
			return
		}
		written, err := s.put(ctx, next)
		var maybe *uncertainError
		if errors.As(err, &maybe) && uncertain < maxUncertain {
			uncertain++
			err = nil
		}
		switch {
		case written:
			s.finish(b, g)
			return
		case err != nil:
			s.fail(b, err)
			return
		}
		pause(ctx, s.owner, try)
	}
}

// apply computes what the batch makes of the cached state.
func (s *scope) apply(now time.Time, b batch) (next State, g Grant, write bool) {
	s.mu.Lock()
	use, success, unsaved := s.use, s.success, s.unsaved
	s.mu.Unlock()
	next = s.state.clone()
	if !unsaved.IsZero() {
		_, write = next.observe(now, s.name, Observation{Deadline: unsaved})
	}
	for _, r := range b.reports {
		var changed bool
		r.until, changed = next.observe(now, s.name, r.Observation)
		write = write || changed
	}
	if l, ok := next.Leases[s.owner]; ok && len(b.shrinks) > 0 && l.N > use {
		l.N, l.Want = use, use
		next.setLease(s.owner, l)
		if use == 0 {
			delete(next.Leases, s.owner)
		}
		write = true
	}
	if len(b.asks) == 0 {
		return next, g, write
	}
	ask := Ask{Owner: s.owner, Lead: s.expected(), InUse: use, Success: success}
	ask.Rules, ask.Concurrency = b.asks[0].Rules, b.asks[0].Concurrency
	for _, a := range b.asks {
		ask.N += a.N
		ask.LeaseFor = max(ask.LeaseFor, a.Longest)
	}
	next, g, changed := Decide(now, next, ask)
	return next, g, write || changed
}

// finish takes note of what was stored and answers everybody.
func (s *scope) finish(b batch, g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		s.seenAt = time.Now()
	}
	s.lead = s.expected()
	s.hold = latest(s.hold, moment(s.state.Hold))
	if !s.unsaved.After(moment(s.state.Hold)) {
		s.unsaved = time.Time{}
	}
	s.leased = s.state.Leases[s.owner].N
	if len(b.asks) > 0 {
		if g.Reason != Concurrency {
			s.next, s.nextFor = g.Next, b.asks[0].Rules
		}
		divide(g, b.asks)
	}
	for _, a := range b.asks {
		if a.Concurrency > 0 && !a.abandoned {
			s.use += len(a.grant.Permits)
		}
		close(a.done)
	}
	for _, r := range b.reports {
		close(r.done)
	}
	for _, c := range b.shrinks {
		c <- nil
	}
}

func (s *scope) fail(b batch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritten(time.Now(), b.reports)
	err = fmt.Errorf("pacing of %s: %w", s.name, err)
	for _, a := range b.asks {
		a.err = err
		close(a.done)
	}
	for _, r := range b.reports {
		r.err = err
		close(r.done)
	}
	for _, c := range b.shrinks {
		c <- err
	}
}

// divide hands the permits of one grant to the asks: retries first, then in order of arrival.
func divide(g Grant, asks []*ask) {
	left := g.Permits
	give := func(a *ask, n int) {
		n = min(n, len(left))
		a.grant.Permits = append(a.grant.Permits, left[:n]...)
		left = left[n:]
	}
	for _, a := range asks {
		a.grant = Grant{Next: g.Next, AskAt: g.AskAt, Hold: g.Hold}
		give(a, min(a.Retries, a.N))
	}
	for _, a := range asks {
		give(a, a.N-len(a.grant.Permits))
		if len(a.grant.Permits) < a.N {
			a.grant.Reason = g.Reason
		}
	}
}

// pause lets others go first after a lost race, longer each time, and each owner for a different while.
func pause(ctx context.Context, owner string, try int) {
	limit := min(time.Millisecond<<min(try, 10), maxPause)
	t := time.NewTimer(time.Duration(hold.Fraction(fmt.Sprintf("%s/%d", owner, try)) * float64(limit)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
