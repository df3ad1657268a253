package run

import (
	"context"
	"errors"
	"fmt"
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
	s.giveBack()
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
	if len(s.away.items()) > 0 { // what the rows that are back have left on the list goes first: then the last checkpoint is exact
		if err := s.checkpoint(context.Background(), sheet.ShardRunning, time.Time{}); err != nil {
			return Result{}, err
		}
	}
	res, status, unsure := s.verdict()
	if unsure != nil {
		return Result{}, s.abandon(unsure)
	}
	halt := s.halt()
	if halt == "" && (res.Outcome == Parked || res.Outcome == Awaiting) {
		s.tally.base.Parks++
		if res.Outcome == Awaiting {
			s.tally.base.Awaits++
		}
	}
	s.leaving = true
	if saved := s.checkpoint(context.Background(), status, res.WakeAt); saved != nil {
		return Result{}, saved
	}
	if halt != "" && res.Outcome != Done {
		res = Result{Outcome: halt}
	}
	res.Early = res.Outcome == Parked && s.began.Before(s.parked) && !res.WakeAt.After(s.parked.Add(time.Second))
	s.log(res)
	return res, err
}

// giveBack returns what was set aside of the budget and is not spent.
func (s *slice) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), durableWrite)
	defer cancel()
	s.allowance.close(ctx)
}

// verdict says how the shard stands after everything is saved.
func (s *slice) verdict() (Result, sheet.ShardStatus, error) {
	pending, cursor := s.pool.pending()
	listed, away, err := s.away.first(context.Background(), cursor)
	if err != nil {
		return Result{}, "", fmt.Errorf("wait list: %w", err)
	}
	fresh := cursor < s.pool.end
	if len(pending) == 0 && !fresh && !away {
		return Result{Outcome: Done}, sheet.ShardDone, nil
	}
	now := time.Now()
	at, waiting := s.pool.earliest()
	full := len(pending) >= s.set.MaxWaiting
	ready := slices.ContainsFunc(pending, func(p sheet.Pending) bool { return p.Until.IsZero() })
	if !full { // else no row of the wait list could come back, and the first of the held rows makes room
		at = sooner(at, listed.At)
	}
	if !waiting && !away || ready || fresh && !full || !at.IsZero() && at.Before(now) {
		return Result{Outcome: More}, sheet.ShardRunning, nil
	}
	res := Result{Outcome: Parked}
	if s.job.awaits && !full { // which rows wait for answers is not counted, because none must be missed: held rows may, too
		res.Outcome = Awaiting
	}
	if !at.IsZero() {
		res.WakeAt = hold.WakeAt(now, at)
	}
	return res, sheet.ShardParked, nil
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
		slog.Int64("completed", counts.Completed), slog.Int64("failed", counts.Failed), slog.Int("pending", len(s.cp.Pending)), s.memory())
}

// memory is what the admission to memory did in this slice (M8).
func (s *slice) memory() slog.Attr {
	b := s.tally.bodies.Use()
	return slog.Group("memory", slog.Int64("turns", b.Turns), slog.Int64("bytes", b.Bytes), slog.Int64("peak", b.Peak), slog.Int64("waits", b.Waits),
		slog.Int64("waitMs", b.WaitMs), slog.Int64("refusals", b.Refusals),
		slog.Int64("heapPeak", s.tally.heapPeak.Load()), slog.Int64("squeezed", s.tally.squeezed.Load()))
}
