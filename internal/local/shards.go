package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/run"
)

// processorsPerSlice is how many processors one slice keeps busy. More slices at once would only take more memory.
const processorsPerSlice = 4

// shards works the run's shards side by side, as many at once as there are processors for. The first that fails ends
// the others; what they have saved stays.
func (d *Driver) shards(ctx context.Context, job *run.Job) error {
	d.recordMu.Lock()
	d.waiting, d.ended = map[int]time.Time{}, 0
	d.recordMu.Unlock()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/processorsPerSlice))
	d.halted = make(chan struct{})
	go d.watch(inner, job.Run.ID, d.halted)
	var wg sync.WaitGroup
	var stopped, halted atomic.Bool
	for shard := range job.Run.Shards {
		wg.Go(func() {
			switch err := d.shard(inner, job, shard, places); {
			case errors.Is(err, ErrStopped):
				stopped.Store(true) // the others drain in their own time
			case errors.Is(err, ErrHalted):
				halted.Store(true) // the others hear of it themselves
			case err != nil:
				cancel(err)
			}
		})
	}
	wg.Wait()
	switch {
	case inner.Err() != nil:
		return context.Cause(inner)
	case halted.Load():
		return ErrHalted
	case stopped.Load():
		return errors.Join(ErrStopped, d.parked(ctx, job))
	}
	return nil
}

// shard works one shard to its end. It takes a place while a slice is at work, and none while it waits.
func (d *Driver) shard(ctx context.Context, job *run.Job, shard int, places chan struct{}) error {
	failures := 0
	for {
		res, err := d.placed(ctx, job, shard, places)
		switch {
		case err != nil && (errors.Is(err, ErrStopped) || errors.Is(err, ErrHalted) || run.Permanent(err) || ctx.Err() != nil || failures == sliceRetries):
			return err
		case err != nil:
			failures++
			err = d.sleep(ctx, time.Now().Add(retryWait))
		case res.Outcome == run.Done:
			return d.done(ctx, job)
		case res.Outcome == run.Cancelled || res.Outcome == run.Paused:
			return ErrHalted
		case d.stopped():
			d.note(shard, res.WakeAt)
			return ErrStopped
		case res.Outcome == run.More:
			failures = 0
		case res.Outcome == run.Busy:
			err = d.sleep(ctx, res.WakeAt)
		case res.Outcome == run.Parked:
			failures = 0
			err = d.wait(ctx, job, shard, res.WakeAt)
		}
		if err != nil {
			return err
		}
	}
}

func (d *Driver) placed(ctx context.Context, job *run.Job, shard int, places chan struct{}) (run.Result, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return d.slice(ctx, job, shard)
	case <-d.Settings.Stop:
		return run.Result{}, ErrStopped
	case <-d.halted:
		return run.Result{}, ErrHalted
	case <-ctx.Done():
		return run.Result{}, context.Cause(ctx)
	}
}

func (d *Driver) note(shard int, wakeAt time.Time) {
	d.recordMu.Lock()
	d.waiting[shard] = wakeAt
	d.recordMu.Unlock()
}

// wait is the Wait state of a shard. When the last shard begins to wait the run is parked, until the first one wakes.
func (d *Driver) wait(ctx context.Context, job *run.Job, shard int, until time.Time) error {
	if err := d.lull(ctx, job, shard, until); err != nil {
		return err
	}
	if err := d.sleep(ctx, until); err != nil {
		return err
	}
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	asleep := d.allWaiting(job)
	delete(d.waiting, shard)
	if !asleep {
		return nil
	}
	if d.OnWake != nil {
		d.OnWake()
	}
	return job.AtWork(ctx, d.Ports.Store)
}

// lull books that a shard waits, and with the last one parks the run.
func (d *Driver) lull(ctx context.Context, job *run.Job, shard int, until time.Time) error {
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	d.waiting[shard] = until
	return d.parkIfAllWait(ctx, job)
}

// done books that a shard has ended; those that are left may all be waiting.
func (d *Driver) done(ctx context.Context, job *run.Job) error {
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	d.ended++
	return d.parkIfAllWait(ctx, job)
}

func (d *Driver) allWaiting(job *run.Job) bool {
	return len(d.waiting) > 0 && len(d.waiting)+d.ended == job.Run.Shards
}

func (d *Driver) parkIfAllWait(ctx context.Context, job *run.Job) error {
	if !d.allWaiting(job) {
		return nil
	}
	first := d.firstWake()
	d.book(job)
	if err := job.Park(ctx, d.Ports.Store, first); err != nil {
		return fmt.Errorf("record of run %s: %w", job.Run.ID, err)
	}
	d.release(ctx)
	if d.OnPark != nil {
		d.OnPark(first)
	}
	return nil
}

func (d *Driver) firstWake() time.Time {
	var first time.Time
	for _, at := range d.waiting {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// parked leaves the run to be resumed later.
func (d *Driver) parked(ctx context.Context, job *run.Job) error {
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	d.book(job)
	return job.Park(context.WithoutCancel(ctx), d.Ports.Store, d.firstWake())
}
