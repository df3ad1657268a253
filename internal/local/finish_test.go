package local_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/local"
	"sluice/internal/memory"
)

const finishing = "version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\nfinish:\n  - {call: a.get, with: {x: \"${run.completed}\"}}\n"

// The driver waits for the steps of the end as it waits for rows: two days for two quota windows, with the run parked, its
// table written before, and leases given back.
func TestH9DriverWaitsForTheLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gw := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &moody{holds: 2}
		var parks []time.Duration
		woken, tables := 0, 0
		began := time.Now()
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"},
			OnWake: func() { woken++ },
			OnPark: func(at time.Time) {
				parks = append(parks, at.Sub(began).Round(time.Second))
				rec, err := sheet.Load(t.Context(), st, "r1")
				if err != nil || rec.Status != sheet.Parked || !rec.Whole() || !rec.WakeAt.Equal(at) {
					t.Errorf("%+v, %v", rec, err)
				}
			},
			Table: func(context.Context) error {
				if tables++; gw.asked > 0 {
					t.Error("a step was made before the table was written")
				}
				return nil
			}}
		job := startMap(t, st, finishing)
		if err := d.Drive(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if job.Run.Status != sheet.Completed || job.Run.Stats.Parks != 2 || woken != 2 || gw.asked != 3 || gw.closed != 2 || tables != 1 {
			t.Errorf("%s, %+v, woken %d, asked %d, closed %d, %d tables", job.Run.Status, job.Run.Stats, woken, gw.asked, gw.closed, tables)
		}
		if len(parks) != 2 || parks[0] != 24*time.Hour || parks[1] != 48*time.Hour {
			t.Errorf("parked until %v", parks)
		}
	})
}

// Somebody cancels while the last step waits: it is not made, and the rows keep their table.
func TestX4DriverHearsWhileTheLastStepWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gw := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &moody{holds: 1}
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"}}
		job := startMap(t, st, finishing)
		time.AfterFunc(time.Hour, func() {
			if err := run.Cancel(t.Context(), st, "r1"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if err := d.Drive(t.Context(), job); !errors.Is(err, local.ErrHalted) || time.Since(began) > time.Hour+2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if rec, err := sheet.Load(t.Context(), st, "r1"); err != nil || rec.Status != sheet.Cancelled || !rec.Whole() || gw.asked != 1 {
			t.Errorf("%+v, %v, %d calls", rec, err, gw.asked)
		}
	})
}

// A write of the record fails, or is done and said to have failed: the driver looks again and goes on.
func TestDriverFinishesOverFailingWritesOfTheRecord(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for skip := range 2 { // the one that says that the rows have ended, and the one that says completed
			synctest.Test(t, func(t *testing.T) {
				f := tabletest.NewFaulty(memory.New())
				st, gw := &store.Store{Table: f, Blobs: memory.NewBlobs()}, &moody{}
				job := startMap(t, st, finishing)
				f.Inject(tabletest.Fault{Kind: kind, Skip: skip, Times: 1, On: func(op tabletest.Op, key table.Key) bool {
					return op.IsWrite() && key == table.Key{Part: "run/r1", Sort: "record"}
				}})
				d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"}}
				if err := d.Drive(t.Context(), job); err != nil || job.Run.Status != sheet.Completed || gw.asked != 1 {
					t.Errorf("kind %d, write %d: %v, %s, %d calls", kind, skip, err, job.Run.Status, gw.asked)
				}
			})
		}
	}
}

// A table that cannot be written is told at once, and the run is not failed for it.
func TestDriverTellsOfATableThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gw := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &moody{}
		full := errors.New("disk full")
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"}, Table: func(context.Context) error { return full }}
		job := startMap(t, st, finishing)
		began := time.Now()
		err := d.Drive(t.Context(), job)
		var told *local.TableError
		if !errors.As(err, &told) || !errors.Is(err, full) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if rec, err := sheet.Load(t.Context(), st, "r1"); err != nil || rec.Status != sheet.Running || rec.Whole() || gw.asked != 0 {
			t.Errorf("%+v, %v, %d calls", rec, err, gw.asked)
		}
		d.Table = nil
		if err := d.Drive(t.Context(), job); err != nil || gw.asked != 1 {
			t.Errorf("%v, %d calls", err, gw.asked)
		}
	})
}
