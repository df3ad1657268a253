package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// keep writes a checkpoint now and then: it renews the lease, bounds what a crash repeats, and cuts the journal.
func (s *slice) keep(tick <-chan time.Time, ended <-chan struct{}) {
	for {
		select {
		case <-tick:
		case <-ended:
			return
		}
		if err := s.checkpoint(s.ctx, sheet.ShardRunning, time.Time{}); err != nil {
			s.drain(err)
			s.stop(err) // what this slice does is worth nothing any more
			return
		}
	}
}

// checkpoint saves where the shard stands. Only what the journal and the pages already hold is ever claimed.
func (s *slice) checkpoint(ctx context.Context, status sheet.ShardStatus, wakeAt time.Time) error {
	s.cpMu.Lock()
	defer s.cpMu.Unlock()
	if err := s.trim(status, wakeAt); err != nil {
		return err
	}
	cp, before, back := s.cp, s.cp.From, s.away.items()
	cp.From = s.pages.from()
	cp.Pending, cp.Cursor = s.pool.pending()
	if !s.leaving { // rows that have ended are left out: their ends are durable first
		if err := s.journal.Flush(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	cp.Reach = max(cp.Reach, cp.Cursor)
	cp.Counts, cp.Counted = s.journal.Counted()
	if cp.Counted.Before(cp.From) {
		cp.From = cp.Counted
	}
	if cp.From != before || cp.FromAt.IsZero() {
		cp.FromAt = time.Now().UTC()
	}
	cp.Closed = slices.DeleteFunc(cp.Closed, func(p sheet.Position) bool { return p.Epoch < cp.From.Epoch })
	cp.Stats, cp.Usage = s.tally.stats(), s.booked.Add(s.used())
	cp.Status, cp.WakeAt, cp.Streaks = status, wakeAt.UTC(), s.progress.list()
	if status == sheet.ShardDone {
		cp.Streaks = nil // nobody waits any more
	}
	cp.Waits = s.away.waiting()
	cp.Waits.Settled = cp.Waits.Settled && s.leaving
	cp.LeaseUntil = time.Now().Add(s.set.Lease).UTC()
	if s.leaving {
		cp.Owner, cp.LeaseUntil = "", time.Time{}
	}
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	err := cp.Save(durable, s.ports.Store, s.job.Run.ID, s.shard)
	if errors.Is(err, table.ErrConflict) {
		return ErrLost
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.lease.Store(cp.LeaseUntil.UnixNano())
	if err := s.away.forget(durable, back); err != nil {
		return fmt.Errorf("wait list: %w", err)
	}
	if s.set.Keep > 0 {
		return nil // it expires
	}
	return sheet.Cut(durable, s.ports.Store, s.job.Run.ID, s.shard, cp.From)
}

// trim saves open pages when the journal has become long, so that the checkpoint can leave it behind. Where it expires,
// it is also left behind before a wait that it might not outlive, such as one that only somebody's word ends: it has no time.
func (s *slice) trim(status sheet.ShardStatus, wakeAt time.Time) error {
	s.pages.mu.Lock()
	many := len(s.pages.open) > keptPages
	s.pages.mu.Unlock()
	expires := s.set.Keep > 0 && (wakeAt.IsZero() || later(time.Now(), wakeAt).Sub(s.cp.FromAt) > s.set.Keep/2)
	switch {
	case status != sheet.ShardRunning && expires, s.leaving && s.set.Keep > 0 && s.halt() != "":
		return s.pages.spill(0)
	case !many && s.journal.Since(s.cp.From) < journalCut:
		return nil
	case status != sheet.ShardRunning:
		return s.pages.spill(0)
	}
	return s.pages.spill(2)
}
