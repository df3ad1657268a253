package run

import (
	"context"
	"errors"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Standing is how a run stands by its shards, for who looks at it from outside: parked, and until when, if no shard
// has anything to do before that. A zero time then says that it waits for answers alone.
func Standing(ctx context.Context, st *store.Store, r *sheet.Run) (sheet.Status, time.Time, error) {
	if r.Status != sheet.Running {
		return r.Status, r.WakeAt, nil
	}
	var wake time.Time
	parked := false
	for _, part := range r.Parts() {
		cp, err := sheet.LoadCheckpoint(ctx, st, part.ID, part.Shard)
		switch {
		case err != nil && !errors.Is(err, table.ErrNotFound):
			return r.Status, time.Time{}, err
		case err != nil || cp.Status == sheet.ShardRunning:
			return sheet.Running, time.Time{}, nil
		case cp.Status == sheet.ShardParked:
			parked, wake = true, sooner(wake, cp.WakeAt)
		}
	}
	if !parked {
		return sheet.Running, wake, nil
	}
	return sheet.Parked, wake, nil
}

// Unfinished are the shards that are not done.
func (j *Job) Unfinished(ctx context.Context, st *store.Store) ([]int, error) {
	var shards []int
	for shard := range j.Run.Shards {
		cp, err := sheet.LoadCheckpoint(ctx, st, j.Run.ID, shard)
		switch {
		case errors.Is(err, table.ErrNotFound), err == nil && cp.Status != sheet.ShardDone:
			shards = append(shards, shard)
		case err != nil:
			return nil, err
		}
	}
	return shards, nil
}
