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

// TableError: every row has ended, and their table could not be written, so that the steps of `finish` were not made.
type TableError struct{ Err error }

func (e *TableError) Error() string { return "its table could not be written: " + e.Err.Error() }

// Unwrap returns why.
func (e *TableError) Unwrap() error { return e.Err }

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
	// Table writes the table of a run whose rows have all ended, before the steps of its map's `finish` are made; nil: that
	// is left to somebody else. It may be called more than once.
	Table func(context.Context) error

	mu      sync.Mutex
	slices  int
	running map[string]bool
	booked  table.Usage // of Usage, what the record of the run says already

	recordMu sync.Mutex        // guards the run's record, which the parts share
	parts    int               // that are worked on: the shards, or the end
	waiting  map[int]time.Time // parts that wait, and until when
	ended    int               // parts that are done

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
	worked := err == nil
	d.book(job)
	if worked {
		err = d.end(ctx, job)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrHalted):
		return d.halt(context.WithoutCancel(ctx), job)
	case errors.Is(err, ErrStopped), ctx.Err() != nil:
		return errors.Join(err, job.Run.Refresh(context.WithoutCancel(ctx), d.Ports.Store))
	case worked && !run.Permanent(err):
		return err // the rows are all there: what is left can be done later
	}
	return errors.Join(err, job.Fail(context.WithoutCancel(ctx), d.Ports.Store, err))
}

// shards works the run's shards.
func (d *Driver) shards(ctx context.Context, job *run.Job) error {
	return d.follow(ctx, job, job.Run.Shards, func(ctx context.Context, ports run.Ports, shard int) (run.Result, error) {
		return job.Slice(ctx, ports, shard, d.Settings)
	})
}

// end finishes the run; the steps of `finish` may have to wait as shards do.
func (d *Driver) end(ctx context.Context, job *run.Job) error {
	return d.follow(ctx, job, 1, func(ctx context.Context, ports run.Ports, _ int) (run.Result, error) {
		res, err := job.Finish(ctx, ports, d.Settings, d.table)
		if errors.Is(err, table.ErrConflict) { // the record may have been written, and reported as not written
			err = errors.Join(err, job.Reload(ctx, ports.Store))
		}
		return res, err
	})
}

func (d *Driver) table(ctx context.Context) error {
	if d.Table == nil {
		return nil
	}
	if err := d.Table(ctx); err != nil {
		return &TableError{err}
	}
	return nil
}

// named gives the next slice a name, so that a slice of this process that has ended is known to be dead.
func (d *Driver) named(next func(run.Ports) (run.Result, error)) (run.Result, error) {
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
	return next(ports)
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

// MailEvery is how often the inbox of a shard is looked into that waits for answers: a small read.
const MailEvery = 250 * time.Millisecond

// mailbox sleeps until a time, zero being never, or until there is something in the shard's inbox.
func (d *Driver) mailbox(job *run.Job, shard int) func(context.Context, time.Time) error {
	return func(ctx context.Context, until time.Time) error {
		for {
			if mail, err := run.Mail(ctx, d.Ports.Store, run.ShardOf{Run: job.Run.ID, Shard: shard}); mail && err == nil {
				return nil // a store that is away is looked into again
			}
			look := time.Now().Add(MailEvery)
			if !until.IsZero() && until.Before(look) {
				return d.sleep(ctx, until)
			}
			if err := d.sleep(ctx, look); err != nil {
				return err
			}
		}
	}
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
