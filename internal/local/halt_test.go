package local_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/local"
	"sluice/internal/memory"
)

// The driver sleeps for a day when somebody cancels, or pauses: within two seconds it has stopped, and the record says so.
func TestX4DriverHearsWhileItSleeps(t *testing.T) {
	for what, ask := range map[sheet.Status]func(t *testing.T, st *store.Store) error{
		sheet.Cancelled: func(t *testing.T, st *store.Store) error { return run.Cancel(t.Context(), st, "r1") },
		sheet.Paused:    func(t *testing.T, st *store.Store) error { return run.Pause(t.Context(), st, "r1", "why not") },
	} {
		t.Run(string(what), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, gw := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &moody{holds: 1}
				d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"}}
				job := start(t, st)
				time.AfterFunc(time.Hour, func() {
					if err := ask(t, st); err != nil {
						t.Error(err)
					}
				})
				began := time.Now()
				err := d.Drive(t.Context(), job)
				if took := time.Since(began) - time.Hour; !errors.Is(err, local.ErrHalted) || took < 0 || took > 2*time.Second {
					t.Fatalf("%v, %v after it was asked", err, took)
				}
				rec, err := sheet.Load(t.Context(), st, "r1")
				if err != nil || rec.Status != what || job.Run.Status != what || !rec.WakeAt.IsZero() {
					t.Fatalf("the record says %s, the job %s, %v", rec.Status, job.Run.Status, err)
				}
				if _, err := run.Continue(t.Context(), st, "r1", sheet.Budget{}); err != nil {
					t.Fatal(err)
				}
				if job, err = run.LoadJob(t.Context(), st, "r1"); err != nil {
					t.Fatal(err)
				}
				if err := d.Drive(t.Context(), job); err != nil || job.Run.Counts.Completed != 1 || gw.asked != 2 {
					t.Errorf("%v, %+v, %d calls", err, job.Run.Counts, gw.asked)
				}
			})
		})
	}
}
