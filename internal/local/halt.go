package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// watch looks at what is asked of the run, as its slices do, so that it is also heard while every shard waits.
func (d *Driver) watch(ctx context.Context, id string, halted chan<- struct{}) {
	every := d.Settings.Look
	if every <= 0 {
		every = run.LookEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asked, err := sheet.LoadControl(ctx, d.Ports.Store, id)
		if err == nil && asked.Halts() {
			close(halted)
			return
		}
	}
}

// halt makes the record say that the run is cancelled or paused, now that nothing of it is at work.
func (d *Driver) halt(ctx context.Context, job *run.Job) error {
	ports := d.Ports
	ports.Alive = d.alive
	if err := sheet.Save(ctx, ports.Store, job.Run); err != nil && !errors.Is(err, table.ErrConflict) { // what is booked
		return fmt.Errorf("record of run %s: %w", job.Run.ID, err)
	}
	rec, err := run.Settle(ctx, ports, d.Settings, job.Run.ID)
	if err != nil {
		return fmt.Errorf("record of run %s: %w", job.Run.ID, err)
	}
	*job.Run = *rec
	return ErrHalted
}
