package run_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
)

const doubling = "version: 1\ncolumns:\n  - {name: y, value: \"${row.x}${row.x}\"}\n"

func registered(id, object string) run.Request {
	return run.Request{
		ID: id, Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte(doubling)},
		InputName: "rows", Seal: intake.SealOptions{Fingerprint: "f-" + object}, Source: &sheet.Source{Object: object, Format: "csv"},
	}
}

func register(t *testing.T, st *store.Store, req run.Request) (*sheet.Run, error) {
	t.Helper()
	p, err := run.Prepare(req)
	if err != nil {
		t.Fatal(err)
	}
	return p.Register(t.Context(), st)
}

// Started by one process, planned by another, worked on by a third.
func TestARegisteredRunIsPlannedFromItsObject(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	rec, err := register(t, st, registered("r", "in/a.csv"))
	if err != nil || rec.Status != sheet.Staging {
		t.Fatalf("%+v, %v", rec, err)
	}
	if err := st.Blobs.Put(t.Context(), "in/a.csv", strings.NewReader("x\nab\ncd\n")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // planning again changes nothing
		job, err := run.Plan(t.Context(), st, "r")
		if err != nil || job.Run.Status != sheet.Running || job.Run.Sealed.Rows != 2 {
			t.Fatalf("%+v, %v", job, err)
		}
	}
	job, err := run.LoadJob(t.Context(), st, "r")
	if err != nil {
		t.Fatal(err)
	}
	ports := run.Ports{Store: st, Owner: "o"}
	if res, err := job.Slice(t.Context(), ports, 0, run.Settings{}); err != nil || res.Outcome != run.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	var out strings.Builder
	_, err = job.Finish(t.Context(), ports, run.Settings{}, func(ctx context.Context) error {
		if now, _ := sheet.Load(ctx, st, "r"); now.Status != sheet.Running {
			t.Errorf("the record says %s before the export is written", now.Status)
		}
		return job.Export(ctx, ports, &out, "csv")
	})
	if err != nil || out.String() != "x,y\nab,abab\ncd,cdcd\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestAFinishWhoseExportFailsIsNoFinish(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	_, _ = register(t, st, registered("r", "in/a.csv"))
	_ = st.Blobs.Put(t.Context(), "in/a.csv", strings.NewReader("x\nab\n"))
	job, err := run.Plan(t.Context(), st, "r")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Slice(t.Context(), run.Ports{Store: st, Owner: "o"}, 0, run.Settings{}); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if _, err := job.Finish(t.Context(), run.Ports{Store: st}, run.Settings{}, func(context.Context) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if rec, _ := sheet.Load(t.Context(), st, "r"); rec.Status != sheet.Running || job.Run.Status != sheet.Running {
		t.Errorf("the record says %s, the job %s", rec.Status, job.Run.Status)
	}
}

func TestX1RegisteringAgainIsTheSameRun(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	first, _ := register(t, st, registered("r", "in/a.csv"))
	again, err := register(t, st, registered("r", "in/a.csv"))
	if err != nil || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := register(t, st, registered("r", "in/b.csv")); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("another input: %v", err)
	}
	if _, err := register(t, st, run.Request{ID: "s", Documents: registered("s", "").Documents}); !errors.Is(err, run.ErrNoSource) {
		t.Errorf("no source: %v", err)
	}
}

// What is wrong with the input itself is refused for good; what went wrong while it was read is not.
func TestPlanTellsRefusalsFromFailures(t *testing.T) {
	const missing = "no object"
	for _, text := range []string{"x\n1,2\n", "", "x,y\n1,2\n", missing} {
		st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
		_, _ = register(t, st, registered("r", "in/a.csv"))
		if text != missing {
			_ = st.Blobs.Put(t.Context(), "in/a.csv", strings.NewReader(text))
		}
		_, err := run.Plan(t.Context(), st, "r")
		if !run.Permanent(err) {
			t.Errorf("%q: %v is not permanent", text, err)
		}
		if rec, err := sheet.Load(t.Context(), st, "r"); err != nil || rec.Status != sheet.Staging {
			t.Errorf("%q: record %+v, %v", text, rec, err)
		}
	}
	st := &store.Store{Table: memory.New(), Blobs: brokenOff{memory.NewBlobs()}}
	_, _ = register(t, st, registered("r", "in/a.csv"))
	if _, err := run.Plan(t.Context(), st, "r"); err == nil || run.Permanent(err) {
		t.Errorf("a read that broke off: %v", err)
	}
}

// brokenOff is a store whose objects end in an error.
type brokenOff struct{ *memory.Blobs }

func (brokenOff) Get(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("x\n1\n"), errReader{})), nil
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestStanding(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	save := func(shard int, status sheet.ShardStatus, wake time.Time) {
		cp, err := sheet.LoadCheckpoint(t.Context(), st, "r", shard)
		if err != nil {
			cp = &sheet.Checkpoint{}
		}
		cp.Status, cp.WakeAt = status, wake
		if err := cp.Save(t.Context(), st, "r", shard); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want sheet.Status, wake time.Time) {
		t.Helper()
		got, when, err := run.Standing(t.Context(), st, &sheet.Run{ID: "r", Status: sheet.Running, Shards: 2})
		if err != nil || got != want || !when.Equal(wake) {
			t.Errorf("%s until %v, %v; want %s until %v", got, when, err, want, wake)
		}
	}
	expect(sheet.Running, time.Time{})
	save(0, sheet.ShardParked, at.Add(time.Hour))
	expect(sheet.Running, time.Time{}) // the other has not begun
	save(1, sheet.ShardParked, at)
	expect(sheet.Parked, at)
	save(1, sheet.ShardDone, time.Time{})
	expect(sheet.Parked, at.Add(time.Hour))
	save(0, sheet.ShardDone, time.Time{})
	expect(sheet.Running, time.Time{})
}
