package run

import (
	"context"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/pacer"
)

// refuse answers every waiting call with an error that ends the slice, under the lock.
func (l *lane) refuse(err error) {
	for _, t := range l.queue {
		l.reply(t, reply{err: err})
	}
	clear(l.queue)
	l.queue = l.queue[:0]
}

// flush answers every waiting call with a hold, under the lock.
func (l *lane) flush(now time.Time) {
	for _, t := range l.queue {
		until := now
		if !l.draining {
			until = l.turnAt()
		}
		l.reply(t, reply{Answer: call.Answer{Outcome: call.Held, Until: until, Scope: l.scope, Error: l.reason, Why: l.why}})
	}
	clear(l.queue)
	l.queue = l.queue[:0]
}

// turnAt is when the next call that is turned away can expect its turn: the closing time, and for those who find
// more before them than a window takes, as many windows later. Rows that come back too early would only be turned
// away again.
func (l *lane) turnAt() time.Time {
	if !l.flushedAt.Equal(l.closed) {
		l.flushed, l.flushedAt = 0, l.closed
	}
	at := l.closed
	for _, limit := range l.provider.Limits {
		if limit.Per <= l.budget {
			continue
		}
		window := pacer.Rule{Rate: limit.Rate, Per: limit.Per}.Window()
		if later := l.closed.Add(time.Duration(l.flushed/limit.Rate) * window); later.After(at) {
			at = later
		}
	}
	l.flushed++
	return at
}

// send executes units and hands the answers out. Those that the gateway refused without dispatching go back to
// their place in the queue.
func (l *lane) send(ctx context.Context, units []*unit) {
	defer l.sent.Done()
	var took time.Duration
	defer func() { l.ended(took) }()
	if units = l.afforded(ctx, l.claimed(ctx, units)); len(units) == 0 {
		return
	}
	attempts := make([]call.Attempt, len(units))
	for i, u := range units {
		attempts[i] = u.compose()
	}
	if err := intend(ctx, units); err != nil {
		l.fail(units, err) // it ends the slice, which gives back what was set aside
		return
	}
	answered, sent := make([]bool, len(units)), time.Now()
	for _, u := range units {
		u.sent = sent
	}
	err := l.gateway.Execute(ctx, attempts, func(i int, a call.Answer) {
		answered[i] = true
		l.answered(ctx, units[i], a)
	})
	took = time.Since(sent)
	l.stats.batch(took)
	for i, u := range units {
		if err != nil && !answered[i] {
			l.allowance.settle(u)
			l.fail([]*unit{u}, err)
		}
	}
}

// afforded sets aside what the units may cost; those that the budget does not cover go back into the queue.
func (l *lane) afforded(ctx context.Context, units []*unit) []*unit {
	can, not, err := l.allowance.afford(ctx, units)
	if err != nil {
		l.fail(units, err)
		return nil
	}
	for _, u := range not {
		l.again(u)
	}
	return can
}

// answered settles a unit.
func (l *lane) answered(ctx context.Context, u *unit, a call.Answer) {
	l.learn(a)
	l.stats.count(a)
	l.allowance.settle(u)
	l.mu.Lock()
	l.batching.back = time.Now()
	l.fits(u, a)
	l.mu.Unlock()
	first, n := u.turns[0], len(u.turns)
	switch {
	case a.Outcome == call.Refused:
		withdraw(ctx, u)
		l.again(u)
	case a.Split && n > 1 && first.bound == nil:
		l.halve(u)
	default:
		if a.Split && first.bound != nil { // an earlier one may have arrived: its parts would be other requests
			a.Outcome = call.Unknown
		}
		for i, t := range u.turns { // all of them, before the first of their rows can end the slice (H11)
			l.reply(t, reply{Answer: a.Of(i, n), asked: u.asked, batch: t.shares, sent: u.sent})
		}
	}
}

// fail answers all calls of units with an error that ends the slice.
func (l *lane) fail(units []*unit, err error) {
	for _, u := range units {
		for _, t := range u.turns {
			l.reply(t, reply{err: err})
		}
	}
}

// learn takes from an answer when the scope is free next.
func (l *lane) learn(a call.Answer) {
	if l.progress.learn(l.provider, a, time.Now()) {
		l.pool.hasten(a.Scope)
	}
	until := a.NextFree // when to ask for the next block: a little before its first permit
	if a.Outcome == call.Held || until.IsZero() && a.Outcome == call.Refused {
		until = later(until, a.Until)
	}
	if until.IsZero() && !l.holding.progress(a) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding.learn(a)
	if a.Scope != "" {
		l.scope = a.Scope
	}
	if until.After(l.closed) {
		l.closed, l.reason, l.why = until, a.Error, a.Why
	}
	l.wake()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// again puts a unit back into the queue; its row gives its place up.
func (l *lane) again(u *unit) {
	l.unsent(u)
	l.holding.stand.CompareAndSwap(vacant, moving)
	for _, t := range u.turns {
		if !t.paused {
			t.paused = true
			l.pool.pause()
		}
	}
	l.mu.Lock()
	for _, t := range u.turns {
		t.seq = -t.seq - 1 // back from being taken
		l.insert(t)
	}
	l.mu.Unlock()
	l.wake()
}
