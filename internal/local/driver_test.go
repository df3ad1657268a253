package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/local"
	"sluice/internal/memory"
)

// moody is a gateway that holds its first calls for a day.
type moody struct {
	mu     sync.Mutex
	holds  int // so many calls are held
	asked  int
	closed int
}

func (m *moody) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i := range batch {
		m.mu.Lock()
		m.asked++
		held := m.asked <= m.holds
		m.mu.Unlock()
		if held {
			deliver(i, call.Answer{Outcome: call.Held, Until: time.Now().Add(24 * time.Hour), Scope: "acme-0123", Dispatched: true, Status: 429})
			continue
		}
		deliver(i, call.Answer{Outcome: call.Result, Value: json.RawMessage(`"y"`), Dispatched: true, Status: 200})
	}
	return nil
}

func (m *moody) Close(context.Context) error {
	m.closed++
	return nil
}

func start(t *testing.T, st *store.Store) *run.Job {
	t.Helper()
	return startMap(t, st, "version: 1\ncolumns:\n  - {name: y, call: a.get, with: {x: \"${row.x}\"}}\n")
}

func startMap(t *testing.T, st *store.Store, text string) *run.Job {
	t.Helper()
	job, err := run.Start(t.Context(), st, run.Request{
		ID: "r1",
		Documents: sheet.Documents{
			MapFile: "m.yaml", Map: []byte(text),
			ToolsFile: "t.yaml", Tools: []byte("version: 1\nproviders: {a: {url: \"https://a.example\", noProgress: 30d}}\ntools: {a.get: {path: \"/{x}\"}}\n"),
		},
		InputName: "in.csv", Format: intake.Options{Format: "csv"},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x\n1\n")), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// The local driver waits for a day as the state machine would, gives leases back meanwhile, and asks once more.
func TestDriverWaitsOutALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gw := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &moody{holds: 1}
		var parkedAt time.Time
		woken := 0
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: gw, Owner: "me"},
			OnPark: func(at time.Time) { parkedAt = at }, OnWake: func() { woken++ }}
		began := time.Now()
		job := start(t, st)
		if err := d.Drive(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if job.Run.Status != sheet.Completed || job.Run.Stats.Parks != 1 || woken != 1 || gw.asked != 2 || gw.closed != 1 {
			t.Errorf("status %s, stats %+v, woken %d, asked %d, closed %d", job.Run.Status, job.Run.Stats, woken, gw.asked, gw.closed)
		}
		if wait := parkedAt.Sub(began).Round(time.Second); wait != 24*time.Hour {
			t.Errorf("parked for %v", wait)
		}
	})
}

func TestDriverStopsAtOnceWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, stop := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, make(chan struct{})
		job := start(t, st)
		var stoppedAt time.Time
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: &moody{holds: 1}, Owner: "me"}, Settings: run.Settings{Stop: stop},
			OnPark: func(time.Time) {
				time.AfterFunc(time.Hour, func() { stoppedAt = time.Now(); close(stop) })
			}}
		err := d.Drive(t.Context(), job)
		if !errors.Is(err, local.ErrStopped) || !time.Now().Equal(stoppedAt) {
			t.Errorf("%v at %v, stopped at %v", err, time.Now(), stoppedAt)
		}
		rec, err := sheet.Load(t.Context(), st, "r1")
		if err != nil || rec.Status != sheet.Parked || rec.WakeAt.Sub(stoppedAt).Round(time.Minute) != 23*time.Hour {
			t.Errorf("record %+v, %v", rec, err)
		}
		left, err := run.BacklogOf(t.Context(), st, rec)
		if err != nil || len(left.Holds) != 1 || left.Holds[0].Provider != "acme" || left.Holds[0].Rows != 1 {
			t.Errorf("holds %+v, %v", left, err)
		}
		time.Sleep(24 * time.Hour)
		if left, err = run.BacklogOf(t.Context(), st, rec); len(left.Holds) != 0 || err != nil {
			t.Errorf("holds that are over: %+v, %v", left, err)
		}
	})
}

// The record's usage is the sum over all processes that worked on the run.
func TestUsageIsBookedByEveryProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, stop := memory.New(), make(chan struct{})
		drive := func(meter *table.Metered, job *run.Job, st *store.Store, owner string, stop chan struct{}) error {
			d := &local.Driver{Ports: run.Ports{Store: st, Gateway: &moody{holds: 1}, Owner: owner}, Settings: run.Settings{Stop: stop},
				Usage: meter.Usage, OnPark: func(time.Time) { close(stop) }}
			return d.Drive(t.Context(), job)
		}
		one := table.Meter(tbl)
		st := &store.Store{Table: one, Blobs: memory.NewBlobs()}
		job := start(t, st)
		if err := drive(one, job, st, "one", stop); !errors.Is(err, local.ErrStopped) {
			t.Fatal(err)
		}
		first := job.Run.Usage
		if used := one.Usage(); first.WriteUnits == 0 || used.Sub(first).Operations > 3 {
			t.Errorf("booked %+v of %+v", first, used)
		}
		time.Sleep(24 * time.Hour)

		two := table.Meter(tbl)
		st = &store.Store{Table: two, Blobs: st.Blobs}
		job, err := run.LoadJob(t.Context(), st, "r1")
		if err != nil {
			t.Fatal(err)
		}
		d := &local.Driver{Ports: run.Ports{Store: st, Gateway: &moody{}, Owner: "two"}, Usage: two.Usage}
		if err := d.Drive(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		rec, err := sheet.Load(t.Context(), st, "r1")
		if err != nil {
			t.Fatal(err)
		}
		if got := rec.Usage.Sub(first); got.WriteUnits == 0 || got.WriteUnits > two.Usage().WriteUnits {
			t.Errorf("the second booked %+v of %+v", got, two.Usage())
		}
	})
}
