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

// work does the next slice of a part of the run.
type work func(ctx context.Context, ports run.Ports, part int) (run.Result, error)

// follow works parts of the run side by side, slice after slice, as many at once as there are processors for. The first
// that fails ends the others; what they have saved stays.
func (d *Driver) follow(ctx context.Context, job *run.Job, parts int, next work) error {
	d.recordMu.Lock()
	d.parts, d.waiting, d.ended = parts, map[int]time.Time{}, 0
	d.recordMu.Unlock()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/processorsPerSlice))
	d.halted = make(chan struct{})
	go d.watch(inner, job.Run.ID, d.halted)
	var wg sync.WaitGroup
	var stopped, halted atomic.Bool
	for part := range parts {
		wg.Go(func() {
			switch err := d.part(inner, job, part, places, next); {
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

// part works one part to its end. It takes a place while a slice is at work, and none while it waits.
func (d *Driver) part(ctx context.Context, job *run.Job, part int, places chan struct{}, next work) error {
	failures := 0
	for {
		res, err := d.placed(ctx, part, places, next)
		switch {
		case err != nil && (final(err) || ctx.Err() != nil || failures == sliceRetries):
			return err
		case err != nil:
			failures++
			err = d.sleep(ctx, time.Now().Add(retryWait))
		case res.Outcome == run.Done:
			return d.done(ctx, job)
		case res.Outcome == run.Cancelled || res.Outcome == run.Paused:
			return ErrHalted
		case d.stopped():
			d.note(part, res.WakeAt)
			return ErrStopped
		case res.Outcome == run.More:
			failures = 0
		case res.Outcome == run.Busy:
			err = d.sleep(ctx, res.WakeAt)
		case res.Outcome == run.Parked:
			failures = 0
			err = d.wait(ctx, job, part, res.WakeAt, d.sleep)
		case res.Outcome == run.Awaiting:
			failures = 0
			err = d.wait(ctx, job, part, res.WakeAt, d.mailbox(job, part))
		}
		if err != nil {
			return err
		}
	}
}

// final reports whether trying the slice again cannot help, or is not wanted.
func final(err error) bool {
	var table *TableError
	return errors.Is(err, ErrStopped) || errors.Is(err, ErrHalted) || errors.As(err, &table) || run.Permanent(err)
}

func (d *Driver) placed(ctx context.Context, part int, places chan struct{}, next work) (run.Result, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return d.named(func(ports run.Ports) (run.Result, error) { return next(ctx, ports, part) })
	case <-d.Settings.Stop:
		return run.Result{}, ErrStopped
	case <-d.halted:
		return run.Result{}, ErrHalted
	case <-ctx.Done():
		return run.Result{}, context.Cause(ctx)
	}
}

func (d *Driver) note(part int, wakeAt time.Time) {
	d.recordMu.Lock()
	d.waiting[part] = wakeAt
	d.recordMu.Unlock()
}

// wait is the Wait state of a part. When the last part begins to wait the run is parked, until the first one wakes.
func (d *Driver) wait(ctx context.Context, job *run.Job, part int, until time.Time, sleep func(context.Context, time.Time) error) error {
	if err := d.lull(ctx, job, part, until); err != nil {
		return err
	}
	if err := sleep(ctx, until); err != nil {
		return err
	}
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	asleep := d.allWaiting()
	delete(d.waiting, part)
	if !asleep {
		return nil
	}
	if d.OnWake != nil {
		d.OnWake()
	}
	return job.AtWork(ctx, d.Ports.Store)
}

// lull books that a part waits, and with the last one parks the run.
func (d *Driver) lull(ctx context.Context, job *run.Job, part int, until time.Time) error {
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	d.waiting[part] = until
	return d.parkIfAllWait(ctx, job)
}

// done books that a part has ended; those that are left may all be waiting.
func (d *Driver) done(ctx context.Context, job *run.Job) error {
	d.recordMu.Lock()
	defer d.recordMu.Unlock()
	d.ended++
	return d.parkIfAllWait(ctx, job)
}

func (d *Driver) allWaiting() bool {
	return len(d.waiting) > 0 && len(d.waiting)+d.ended == d.parts
}

func (d *Driver) parkIfAllWait(ctx context.Context, job *run.Job) error {
	if !d.allWaiting() {
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

// firstWake is when the first shard wakes by time; zero: all of them wait for answers alone.
func (d *Driver) firstWake() time.Time {
	var first time.Time
	for _, at := range d.waiting {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
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
