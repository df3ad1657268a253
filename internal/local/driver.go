// Package local runs maps on one machine: it opens the state folder and does what the state machines do in the
// cloud: slices, waits between them, and the end. It owns no decision about rows; those are the engine's.
package local

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

var (
	// ErrStopped: the run was parked because it was asked to stop. Nothing is lost; it can be resumed.
	ErrStopped = errors.New("stopped")
	// ErrHalted: the run was cancelled or paused meanwhile; its record says which.
	ErrHalted = errors.New("cancelled or paused")
)

// Retries of a slice that failed for a reason that may pass, such as a full disk.
const (
	sliceRetries = 3
	retryWait    = 2 * time.Second
)

// Driver works a run to its end.
type Driver struct {
	Ports    run.Ports // Owner is the process; every slice gets a name of its own
	Settings run.Settings
	OnPark   func(wakeAt time.Time)
	OnWake   func()
	Usage    func() table.Usage // what the store was asked to do so far; nil is not booked

	mu      sync.Mutex
	slices  int
	running map[string]bool
	booked  table.Usage // of Usage, what the record of the run says already

	recordMu sync.Mutex        // guards the run's record, which the shards share
	waiting  map[int]time.Time // shards that wait, and until when
	ended    int               // shards that are done

	halted chan struct{} // closed when the run is asked to stop for good, or until it is continued
}

// Drive runs slices until the run has ended, waiting between them as long as they ask for, and finishes it. It
// returns ErrStopped if Settings.Stop was closed meanwhile, ErrHalted if the run was cancelled or paused, and the run's
// failure if it failed.
func (d *Driver) Drive(ctx context.Context, job *run.Job) error {
	if err := job.AtWork(ctx, d.Ports.Store); err != nil {
		return err
	}
	err := d.shards(ctx, job)
	d.book(job)
	switch {
	case err == nil:
	case errors.Is(err, ErrHalted):
		return d.halt(context.WithoutCancel(ctx), job)
	case errors.Is(err, ErrStopped), ctx.Err() != nil:
		return errors.Join(err, job.Run.Refresh(context.WithoutCancel(ctx), d.Ports.Store))
	default:
		return errors.Join(err, job.Fail(context.WithoutCancel(ctx), d.Ports.Store, err))
	}
	err = job.Finish(ctx, d.Ports.Store)
	if err != nil && run.Permanent(err) {
		return errors.Join(err, job.Fail(context.WithoutCancel(ctx), d.Ports.Store, err))
	}
	return err
}

// slice names the slice, so that a slice of this process that has ended is known to be dead.
func (d *Driver) slice(ctx context.Context, job *run.Job, shard int) (run.Result, error) {
	ports := d.Ports
	d.mu.Lock()
	d.slices++
	name := ports.Owner + "/" + strconv.Itoa(d.slices)
	if d.running == nil {
		d.running = map[string]bool{}
	}
	d.running[name] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.running, name)
		d.mu.Unlock()
	}()
	ports.Owner, ports.Alive = name, d.alive
	return job.Slice(ctx, ports, shard, d.Settings)
}

// alive asks who owns a shard: a slice of this process, or the process of another.
func (d *Driver) alive(owner string) bool {
	process, _, _ := strings.Cut(owner, "/") // a process's id has no slash
	if process == d.Ports.Owner {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.running[owner]
	}
	return d.Ports.Alive == nil || d.Ports.Alive(process)
}

func (d *Driver) stopped() bool {
	select {
	case <-d.Settings.Stop:
		return true
	default:
		return false
	}
}

// release gives back what this process holds of providers' concurrency: other runs may need it during the wait. If
// that fails, they get it when the leases run out.
func (d *Driver) release(ctx context.Context) {
	if g, ok := d.Ports.Gateway.(interface{ Close(context.Context) error }); ok {
		_ = g.Close(ctx)
	}
}

// book adds what the store was asked to do to the run's record, which the caller saves: the sum over all processes
// that worked on the run, but for each one's last few operations.
func (d *Driver) book(job *run.Job) {
	if d.Usage == nil {
		return
	}
	used := d.Usage()
	job.Run.Usage = job.Run.Usage.Add(used.Sub(d.booked))
	d.booked = used
}

func (d *Driver) sleep(ctx context.Context, until time.Time) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-d.Settings.Stop:
		return ErrStopped
	case <-d.halted:
		return ErrHalted
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
