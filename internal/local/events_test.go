package local_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/local"
	"sluice/internal/memory"
)

const asking = "version: 1\ncolumns:\n  - {name: ok, event: {key: \"go-${row.x}\", expires: 24h, onTimeout: park}}\n"

// The driver sleeps without a time while only answers are waited for; another process gives one, and it goes on.
func TestDriverGoesOnWithAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
		job := startMap(t, st, asking)
		var parkedAt time.Time
		woken := 0
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: &moody{}, Owner: "me"},
			OnPark: func(at time.Time) { parkedAt = at }, OnWake: func() { woken++ }}
		var answeredAt time.Time
		time.AfterFunc(100*time.Hour, func() {
			rec, err := sheet.Load(context.Background(), st, "r1")
			if err != nil || rec.Status != sheet.Parked || !rec.WakeAt.IsZero() {
				t.Errorf("while it waits: %+v, %v", rec, err)
			}
			answeredAt = time.Now()
			if _, err := run.Answer(context.Background(), st, "go-1", json.RawMessage("true"), run.Whose{}); err != nil {
				t.Error(err)
			}
		})
		if err := d.Drive(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if !parkedAt.IsZero() || woken != 1 || job.Run.Status != sheet.Completed {
			t.Errorf("parked until %v, woken %d times, %s", parkedAt, woken, job.Run.Status)
		}
		if took := time.Since(answeredAt); took > local.MailEvery {
			t.Errorf("the run ended %v after the answer", took)
		}
	})
}

// A driver that is stopped while it waits for answers leaves the run parked.
func TestDriverStopsWhileItWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, stop := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, make(chan struct{})
		job := startMap(t, st, asking)
		time.AfterFunc(time.Hour, func() { close(stop) })
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: &moody{}, Owner: "me"}, Settings: run.Settings{Stop: stop}}
		began := time.Now()
		if err := d.Drive(t.Context(), job); err == nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if job.Run.Status != sheet.Parked {
			t.Errorf("the run is %s", job.Run.Status)
		}
	})
}
