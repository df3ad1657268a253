package run

import (
	"fmt"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/sheet"
)

// wire puts the parts of the slice together, and hands them what earlier slices have left.
func (s *slice) wire(past *past, memo *call.Memo) {
	run, st := s.job.Run.ID, s.ports.Store
	s.tally = &tally{base: past.stats, began: s.began, memory: s.set.Memory}
	s.tally.billed, _ = s.ports.Gateway.(call.BilledGateway)
	s.pool = newPool(s.work, s.set, s.cp.Cursor, s.job.endRow(s.cp.EndPage))
	s.journal = sheet.OpenJournal(st, sheet.JournalOptions{
		Run: run, Shard: s.shard, Epoch: s.cp.Epoch, Counts: past.counts, Linger: s.set.Linger, Keep: s.set.Keep, Stats: s.tally.stats, Told: s.saved,
	})
	s.pages = newPages(s.job, st, s.cp.Epoch, s.journal, s.drain)
	s.pages.begun = s.cp.Reach
	s.progress, s.allowance = newProgress(s.cp.Streaks), s.newAllowance()
	s.caller = s.newCaller(memo)
	s.pool.freed, s.pool.stalled, s.allowance.settled = s.caller.wakeLanes, s.caller.stalled, s.caller.wakeLanes
	past.remember(memo)
	past.hand(s.pages)
	for _, p := range s.cp.Pending {
		if !past.ended(p.Row) {
			s.pool.held.resume(&task{Pending: p, residency: hold.Residency{Spent: p.Spent}, heldAt: heldSince(p)})
		}
	}
	if s.job.waits {
		s.wireAway()
	}
	for _, l := range s.caller.lanes {
		s.pumps.Add(1)
		go func() { defer s.pumps.Done(); l.pump(call.CountBodies(s.ctx, &s.tally.bodies)) }()
	}
}

// saved hears of every commit of the journal.
func (s *slice) saved(ends sheet.Counts, err error) {
	if err != nil {
		s.drain(err)
		return
	}
	s.pool.saved(int(ends.Ended()))
}

// work runs a row. What ends the slice ends the dispatching of calls at once, of those too that wait for their turn.
func (s *slice) work(t *task) verdict {
	v := s.runRow(t)
	if v.err != nil {
		s.drain(v.err)
	}
	return v
}

// owned is an error once the lease is over: another slice may work on the shard by now, and this one must not make its
// calls a second time (X2). A process that was frozen finds out here, before its next dispatch.
func (s *slice) owned(now time.Time) error {
	if now.UnixNano() < s.lease.Load() {
		return nil
	}
	return fmt.Errorf("%w, or may be: its lease could not be renewed", ErrLost)
}

// heldSince marks a row that was held when its slice ended; its retries go ahead of first attempts.
func heldSince(p sheet.Pending) time.Time {
	if p.Until.IsZero() {
		return time.Time{}
	}
	return time.Now()
}

func (s *slice) newCaller(memo *call.Memo) *caller {
	run := s.job.Run
	c := &caller{
		run: run.ID, budget: s.set.Budget, memo: memo, pool: s.pool, stats: s.tally,
		lanes: map[string]*lane{}, progress: s.progress,
		receipts: &call.Receipts{Store: s.ports.Store, Owner: call.Claimant{
			Shard: fmt.Sprintf("%s/%d", run.ID, s.shard), Epoch: s.cp.Epoch}},
	}
	if run.Force {
		c.since = run.StartedAt
	}
	for name, p := range s.job.usedProviders(s.ports.Resolvers) {
		c.lanes[name] = newLane(p, s)
	}
	return c
}

func (c *caller) wakeLanes() {
	for _, l := range c.lanes {
		l.wake()
	}
}
