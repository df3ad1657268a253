package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sluice/internal/core/hold"
	"sluice/internal/core/sheet"
)

// close drains, saves, and tells how the slice ended (H3: the barrier comes before the park).
func (s *slice) close(failed error) (Result, error) {
	s.drain(failed)
	s.pool.wg.Wait()
	s.pool.mu.Lock()
	err := s.pool.failed
	s.pool.mu.Unlock()
	if errors.Is(err, errCancelled) {
		err = nil
	}
	s.stop(errStopped)
	s.pumps.Wait()
	if settled := s.pages.settle(); err == nil {
		err = settled
	}
	if flushed := s.journal.Flush(context.Background()); err == nil {
		err = flushed
	}
	s.journal.Close()
	if err == nil {
		err = s.tellPause(context.Background())
	}
	if err != nil && !isRowError(err) {
		return Result{}, s.abandon(err)
	}
	res, status := s.verdict()
	halt := s.halt()
	if halt == "" && res.Outcome == Parked {
		s.tally.base.Parks++
	}
	s.leaving = true
	if saved := s.checkpoint(context.Background(), status, res.WakeAt); saved != nil {
		return Result{}, saved
	}
	if halt != "" && res.Outcome != Done {
		res = Result{Outcome: halt}
	}
	s.log(res)
	return res, err
}

// verdict says how the shard stands after everything is saved.
func (s *slice) verdict() (Result, sheet.ShardStatus) {
	pending, cursor := s.pool.pending()
	fresh := cursor < s.pool.end
	if len(pending) == 0 && !fresh {
		return Result{Outcome: Done}, sheet.ShardDone
	}
	now := time.Now()
	at, waiting := s.pool.earliest()
	full := len(pending) >= s.set.MaxWaiting
	ready := slices.ContainsFunc(pending, func(p sheet.Pending) bool { return p.Until.IsZero() })
	if !waiting || ready || fresh && !full || at.Before(now) {
		return Result{Outcome: More}, sheet.ShardRunning
	}
	return Result{Outcome: Parked, WakeAt: hold.WakeAt(now, at)}, sheet.ShardParked
}

// abandon gives the shard up after a failure. Where it stands is what the last checkpoint and the journal say; only
// the lease is given back, if that is still possible, so that the next slice need not wait for it.
func (s *slice) abandon(err error) error {
	s.stop(err)
	if s.journal != nil && errors.Is(err, ErrLost) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), durableWrite)
	defer cancel()
	cp, loadErr := sheet.LoadCheckpoint(ctx, s.ports.Store, s.job.Run.ID, s.shard)
	if loadErr != nil || cp.Owner != s.ports.Owner || cp.Epoch != s.cp.Epoch {
		return err
	}
	cp.Owner, cp.LeaseUntil = "", time.Time{}
	if saveErr := cp.Save(ctx, s.ports.Store, s.job.Run.ID, s.shard); saveErr != nil {
		s.ports.logger().Warn("lease not given back", slog.String("run", s.job.Run.ID), slog.Any("error", saveErr))
	}
	return err
}

func (s *slice) log(res Result) {
	counts, _ := s.journal.Counted()
	s.ports.logger().Info("slice",
		slog.String("run", s.job.Run.ID), slog.Int("shard", s.shard), slog.Int64("epoch", s.cp.Epoch),
		slog.String("outcome", string(res.Outcome)), slog.Time("wakeAt", res.WakeAt),
		slog.Int64("completed", counts.Completed), slog.Int64("failed", counts.Failed), slog.Int("pending", len(s.cp.Pending)))
}
