package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
)

// batchSize is how many requests travel to the gateway together.
const batchSize = 64

// lane is the queue of one provider: calls wait in it for their turn, first come first served, retries first (Q6).
// Nothing is sent before the time that the gateway named. Waiting for one's turn is not a hold; it becomes one when
// the head of the queue cannot be served within the resident budget (H17).
type lane struct {
	provider  *mapspec.Provider
	gateway   call.Gateway
	pool      *pool
	progress  *progress
	allowance *allowance
	journal   *sheet.Journal
	owned     func(time.Time) error // whether the shard is still the slice's
	budget    time.Duration
	stats     *tally

	mu        sync.Mutex
	queue     []*turn
	seq       int64
	closed    time.Time // nothing is sent before
	scope     string
	reason    *call.Error
	why       call.Why
	flushed   int       // turns turned into holds since the lane closed
	flushedAt time.Time // the closing that they were counted for
	draining  bool
	holding   holding
	batching  batching
	forming   forming
	sizes     map[*mapspec.Tool]int // calls in one request, where the provider takes fewer than the tool says
	cohorts   map[string]*cohort    // of bound calls, by the request that they share
	kick      chan struct{}
	sent      sync.WaitGroup
}

// turn is a call that waits for its turn.
type turn struct {
	tool    *mapspec.Tool
	place   call.Place
	attempt call.Attempt
	intent  *intent     // of a call that must not be repeated, or not by itself; nil for others
	claim   *claim      // of a call that other runs may be making; nil for others
	bound   *call.Batch // the request that it is bound to
	shares  *call.Batch // the request that it is sent in, where that binds
	cohort  *cohort     // those that it travels with; nil: anybody
	seq     int64
	since   time.Time
	paused  bool // its row has given its place up
	answer  chan reply
}

type reply struct {
	call.Answer
	asked call.Attempt // what was sent, with whomever it travelled
	batch *call.Batch  // the request that it shared, where that binds
	sent  time.Time    // when it was about to be dispatched; zero: it was not
	err   error
}

// reply answers the call; its row goes on.
func (l *lane) reply(t *turn, r reply) {
	if t.paused {
		l.pool.unpause()
		t.paused = false
	}
	t.answer <- r
}

func newLane(p *mapspec.Provider, s *slice) *lane {
	return &lane{
		provider: p, gateway: s.ports.Gateway, pool: s.pool, progress: s.progress, allowance: s.allowance, journal: s.journal, owned: s.owned, stats: s.tally,
		budget: s.set.Budget.Limit, batching: newBatching(p, s.set.Linger, s.set.Budget.Limit), kick: make(chan struct{}, 1),
		sizes: map[*mapspec.Tool]int{}, cohorts: map[string]*cohort{},
	}
}

// troubleWait is how often a lane looks whether results can be saved again.
const troubleWait = 20 * time.Millisecond

// do queues the call and returns its answer. It never waits longer than the head of the queue can be served
// within the resident budget; past that it returns a hold.
func (l *lane) do(ctx context.Context, t *turn) reply {
	if ctx.Err() != nil {
		return reply{err: context.Cause(ctx)}
	}
	t.since, t.answer = time.Now(), make(chan reply, 1)
	l.mu.Lock()
	t.cohort = l.cohortOf(t.bound)
	t.seq = l.seq
	l.seq++
	t.paused = len(l.queue) > 0 && l.queue[0].paused || l.closed.After(time.Now()) || l.batching.gathers(len(l.queue)) || t.tool.Batch != nil
	if t.paused {
		l.holding.stand.CompareAndSwap(vacant, moving)
		l.pool.pause() // before the pump can see the turn and take a place for it
	}
	l.insert(t)
	l.mu.Unlock()
	l.wake()
	select {
	case r := <-t.answer:
		return r
	case <-ctx.Done():
		return l.interrupted(ctx, t)
	}
}

// interrupted takes a call out of the queue. One that was sent already has its exchange interrupted, and what is known
// of it then must be saved: a call that may have arrived is not made again as if it had not (T2).
func (l *lane) interrupted(ctx context.Context, t *turn) reply {
	l.mu.Lock()
	i := slices.Index(l.queue, t)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		if t.cohort != nil {
			t.cohort.size--
		}
		if t.paused {
			l.pool.unpause()
		}
	}
	l.mu.Unlock()
	if i >= 0 {
		return reply{err: context.Cause(ctx)}
	}
	return <-t.answer
}

// insert keeps the queue in the order of turns, under the lock.
func (l *lane) insert(t *turn) {
	i, _ := slices.BinarySearchFunc(l.queue, t, func(a, b *turn) int {
		if a.attempt.Retry != b.attempt.Retry {
			if a.attempt.Retry {
				return -1
			}
			return 1
		}
		return int(a.seq - b.seq)
	})
	l.queue = slices.Insert(l.queue, i, t)
}

func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// pump sends what may be sent, until ctx ends.
func (l *lane) pump(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if ctx.Err() != nil {
			l.sent.Wait()
			l.mu.Lock()
			l.refuse(context.Cause(ctx))
			l.mu.Unlock()
			return
		}
		units, wait := l.next(time.Now())
		if len(units) > 0 {
			l.sent.Add(1)
			go l.send(ctx, units)
			continue
		}
		if wait <= 0 {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-l.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// next takes what may be sent now, or says how long to wait (0: until something changes). Where the head
// of the queue would wait past the budget, or the slice drains, the queue is turned into holds.
func (l *lane) next(now time.Time) ([]*unit, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.stands(vacant)
		return nil, 0
	}
	wait := l.closed.Sub(now)
	if wait > l.budget || l.draining || l.tooLong(now) || wait > 0 && l.progress.over(l.provider, l.scope) != nil {
		l.flush(now)
		l.stands(vacant)
		return nil, 0
	}
	if wait > 0 && l.holding.on.Load() {
		l.stands(stalled)
	} else {
		l.stands(moving)
	}
	if wait = max(wait, l.standBack(now)); wait > 0 {
		return nil, wait
	}
	if err := l.owned(now); err != nil {
		l.refuse(err)
		return nil, 0
	}
	if l.journal.Trouble() {
		return nil, troubleWait
	}
	if wait := l.allowance.wait(now); wait > 0 {
		return nil, wait
	}
	units, alone, wait := l.units(now)
	if len(units) == 0 {
		return nil, wait
	}
	most, full := l.batching.room(now, len(units))
	least := 1
	if alone {
		calls, patient := l.company(now, most)
		least, full = calls, max(full, patient)
	}
	if full > 0 {
		return nil, full
	}
	taken := l.take(units[:min(len(units), most)], least, now)
	if taken == nil && least > 1 {
		wait = l.batching.linger // others were faster at the places, and may keep them
	}
	return taken, wait
}

// drain turns everything that waits into holds that end at once: the rows stay pending.
func (l *lane) drain() {
	l.mu.Lock()
	l.draining = true
	l.mu.Unlock()
	l.wake()
}
