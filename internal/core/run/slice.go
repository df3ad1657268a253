package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// ErrLost: another slice has taken the shard over. What this one has saved stands.
var ErrLost = errors.New("the shard is owned by another slice")

// slice is what one invocation does for a shard.
type slice struct {
	job       *Job
	ports     Ports
	shard     int
	set       Settings
	began     time.Time
	booked    table.Usage // by earlier slices of the shard
	ctx       context.Context
	stop      context.CancelCauseFunc
	journal   *sheet.Journal
	pages     *pages
	pool      *pool
	caller    *caller
	progress  *progress
	allowance *allowance
	tally     *tally
	pumps     sync.WaitGroup
	quit      chan struct{} // closed when draining begins
	quitOne   sync.Once
	blank     sync.Pool // rows that are done

	ordersMu sync.Mutex
	orders   orders
	away     *away                 // nil: no row ever waits at a boundary
	backMu   sync.Mutex            // one goes through wait list and inbox at a time
	inbox    func(context.Context) // looks at what has come for the shard; nil: nothing ever comes

	cpMu    sync.Mutex
	cp      *sheet.Checkpoint
	lease   atomic.Int64 // until when the shard is this slice's, as far as it knows
	leaving bool         // the next checkpoint gives the shard up
	parked  time.Time    // until when the shard was parked when it was taken; zero: it was not
}

// Slice works on a shard until it is done, until it has to wait longer than it may, or until the deadline nears.
// When it returns, everything that it reports is durable. A shard that another slice is working on is left alone.
func (j *Job) Slice(ctx context.Context, ports Ports, shard int, set Settings) (Result, error) {
	s := &slice{job: j, ports: ports, shard: shard, set: set.withDefaults(j), quit: make(chan struct{}), began: time.Now()}
	cp, busy, err := s.acquire(ctx)
	if err != nil || cp == nil {
		return busy, err
	}
	if cp.Status == sheet.ShardDone {
		return Result{Outcome: Done}, nil
	}
	defer j.booked(ports.Store)
	s.cp, s.booked = cp, cp.Usage
	s.lease.Store(cp.LeaseUntil.UnixNano())
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	past, err := j.replay(s.ctx, cp, shard, ports)
	if err != nil {
		return Result{}, s.abandon(err)
	}
	cp.Closed, cp.Reach = past.closed(cp), past.reach
	memo := call.NewMemo(memoBudget)
	if err := past.recall(s.ctx, ports, cp, memo); err != nil {
		return Result{}, s.abandon(err)
	}
	asked, err := sheet.LoadControl(s.ctx, ports.Store, j.known()) // after the shard is taken: who asks later finds it taken
	if err != nil {
		return Result{}, s.abandon(err)
	}
	s.wire(past, memo)
	if s.away != nil {
		if err := s.openAway(s.ctx, past); err != nil {
			return Result{}, s.abandon(err)
		}
	}
	s.obey(asked)
	s.set.Watch.attach(s)
	defer s.set.Watch.detach(s)
	if s.parked.IsZero() {
		// The first checkpoint closes the journals of earlier slices: what a dead one may still write is not read again.
		// One that has parked writes nothing any more.
		err = s.checkpoint(s.ctx, sheet.ShardRunning, time.Time{})
	}
	if err == nil {
		s.loop()
	}
	return s.close(err)
}

// acquire makes this slice the shard's owner, by compare-and-swap (X2). It returns no checkpoint if the shard is
// owned by a slice that may be alive.
func (s *slice) acquire(ctx context.Context) (*sheet.Checkpoint, Result, error) {
	cp, err := sheet.LoadCheckpoint(ctx, s.ports.Store, s.job.Run.ID, s.shard)
	if errors.Is(err, table.ErrNotFound) {
		first, end := s.job.shardPages(s.shard)
		cp, err = &sheet.Checkpoint{Status: sheet.ShardRunning, FirstPage: first, EndPage: end, Cursor: s.job.firstRow(first)}, nil
	}
	if err != nil {
		return nil, Result{}, err
	}
	now := time.Now()
	if cp.Status == sheet.ShardDone {
		return cp, Result{}, nil
	}
	if s.ports.owned(cp, now) {
		return nil, Result{Outcome: Busy, WakeAt: cp.LookAgain(now)}, nil
	}
	if cp.Status == sheet.ShardParked {
		s.parked = cp.WakeAt
	}
	if cp.Epoch == 0 {
		cp.From, cp.Counted = sheet.Position{Epoch: 1}, sheet.Position{Epoch: 1}
	}
	cp.Epoch++
	cp.Stats.Slices++
	cp.Owner, cp.OwnedAt, cp.LeaseUntil = s.ports.Owner, now.UTC(), now.Add(s.set.Lease).UTC()
	cp.Status, cp.WakeAt = sheet.ShardRunning, time.Time{}
	err = cp.Save(ctx, s.ports.Store, s.job.Run.ID, s.shard)
	if errors.Is(err, table.ErrConflict) {
		return nil, Result{Outcome: Busy, WakeAt: now.Add(time.Second)}, nil
	}
	return cp, Result{}, err
}

// loop runs the pool until nothing is at work and nothing may be waited for.
func (s *slice) loop() {
	tick := time.NewTicker(min(CheckpointEvery, s.set.Lease/3))
	defer tick.Stop()
	ticks := sync.WaitGroup{}
	watching, ended := context.WithCancel(context.WithoutCancel(s.ctx)) // the lease is needed until nothing is at work
	ticks.Go(func() { s.keep(tick.C, watching.Done()) })
	ticks.Go(func() { s.watchControl(watching) })
	ticks.Go(func() { s.watchHeap(watching) })
	defer ticks.Wait()
	defer ended()

	admit, cancel := s.admission()
	defer cancel()
	stop, done := s.set.Stop, s.ctx.Done() // nil once heard: they stay closed
	for {
		step := s.pool.next()
		if step.over {
			if s.comeBack(true) {
				continue
			}
			return
		}
		before, idle := time.Now(), s.pool.idle()
		s.pool.wait(step, admit, stop, done)
		if idle {
			s.tally.residentMs.Add(time.Since(before).Milliseconds())
		}
		s.comeBack(false)
		switch {
		case done != nil && s.ctx.Err() != nil:
			done = nil
			s.drain(context.Cause(s.ctx))
		case !s.stopping() && (closed(stop) || s.past(s.admitUntil())):
			s.drain(nil)
		}
		if s.stopping() {
			stop = nil
		}
	}
}

// admission is a timer for the moment at which the slice stops admitting rows.
func (s *slice) admission() (<-chan time.Time, func()) {
	if s.set.Deadline.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(max(time.Until(s.admitUntil()), 0))
	return t.C, func() { t.Stop() }
}

// admitUntil leaves time before the deadline for the calls in flight and for saving.
func (s *slice) admitUntil() time.Time {
	if s.set.Deadline.IsZero() {
		return time.Time{}
	}
	longest := s.job.longestCall
	for _, tool := range s.job.resolverTools(s.ports.Resolvers) {
		longest = max(longest, tool.Timeout)
	}
	return s.set.Deadline.Add(-DrainMargin - longest)
}

func (s *slice) past(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *slice) stopping() bool { return closed(s.quit) }

// drain ends the admission of rows. With an error nothing more is dispatched either: a call whose result cannot be
// saved is not paid for (T5).
func (s *slice) drain(err error) {
	s.quitOne.Do(func() { close(s.quit) })
	s.pool.drain(err)
	for _, l := range s.caller.lanes {
		l.drain()
	}
}

func (p Ports) logger() *slog.Logger {
	if p.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Log
}
