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
		if t.paused {
			l.pool.unpause(true)
			t.paused = false
		}
		t.answer <- reply{err: err}
	}
	clear(l.queue)
	l.queue = l.queue[:0]
}

// flush answers every waiting call with a hold, under the lock.
func (l *lane) flush(now time.Time) {
	for _, t := range l.queue {
		if t.paused {
			l.pool.unpause(true)
			t.paused = false
		}
		until := now
		if !l.draining {
			until = l.turnAt()
		}
		t.answer <- reply{Answer: call.Answer{Outcome: call.Held, Until: until, Scope: l.scope, Error: l.reason}}
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

// send executes a batch and hands the answers out. Calls that the gateway refused without dispatching go back to
// their place in the queue.
func (l *lane) send(ctx context.Context, batch []*turn) {
	defer l.sent.Done()
	var took time.Duration
	defer func() { l.ended(took) }()
	if batch = l.claimed(ctx, batch); len(batch) == 0 {
		return
	}
	attempts := make([]call.Attempt, len(batch))
	for i, t := range batch {
		attempts[i] = t.attempt
	}
	if err := intend(ctx, batch); err != nil {
		for _, t := range batch {
			t.answer <- reply{err: err}
		}
		return
	}
	answered, sent := make([]bool, len(batch)), time.Now()
	err := l.gateway.Execute(ctx, attempts, func(i int, a call.Answer) {
		answered[i] = true
		l.learn(a)
		if a.Outcome == call.Refused {
			batch[i].intent.withdraw(ctx)
			l.again(batch[i])
			return
		}
		batch[i].answer <- reply{Answer: a, sent: sent}
	})
	took = time.Since(sent)
	l.stats.batch(took)
	if err == nil {
		return
	}
	for i, t := range batch {
		if !answered[i] {
			t.answer <- reply{err: err}
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
		l.closed, l.reason = until, a.Error
	}
	l.wake()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// again puts a refused call back into the queue; its row gives its place up.
func (l *lane) again(t *turn) {
	l.unsent(t)
	t.paused = true
	l.holding.stand.CompareAndSwap(vacant, moving)
	l.pool.pause()
	l.mu.Lock()
	l.insert(t)
	l.mu.Unlock()
	l.wake()
}
