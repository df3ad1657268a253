package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const keyedMap = `
version: 1
name: keyed
key: x
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: at, value: "${index}"}
`

func (w *world) tryExtend(id, mapText string, lines ...string) (*run.Job, run.Extended, error) {
	return run.Extend(w.t.Context(), w.st, run.Request{
		ID:        id,
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(tools)},
		InputName: "more.csv",
		Input:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
		Format:    intake.Options{Format: "csv"},
	})
}

func (w *world) extend(id, mapText string, lines ...string) (*run.Job, run.Extended) {
	w.t.Helper()
	job, told, err := w.tryExtend(id, mapText, lines...)
	if err != nil {
		w.t.Fatal(err)
	}
	return job, told
}

// allShards works every shard of a run to its end, and returns the exported table.
func (w *world) allShards(job *run.Job) string {
	w.t.Helper()
	for shard := 0; shard < job.Run.Shards; {
		p := w.ports()
		p.Alive = func(string) bool { return false }
		res, err := job.Slice(w.t.Context(), p, shard, w.settings)
		switch {
		case err != nil:
			w.t.Fatal(err)
		case res.Outcome == run.Done:
			shard++
		case res.Outcome == run.Parked:
			time.Sleep(time.Until(res.WakeAt))
		}
	}
	return w.export(w.reload(job))
}

// New rows come behind the others, rows that the run has are duplicates, and what has ended is not computed again.
func TestX4ExtendComputesNewRowsOnly(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.allShards(w.start("r", keyedMap, "x", "a", "b", "a"))
		pages := items(t, tbl, "run/r/out", "p/")
		job, told := w.extend("r", keyedMap, "x", "b", "c", "d")
		if told != (run.Extended{Rows: 2, Duplicates: 1}) || job.Run.Status != sheet.Running || job.Run.Shards != 2 || job.Run.Execution() != 1 {
			t.Fatalf("%+v, %s, %d shards", told, job.Run.Status, job.Run.Shards)
		}
		if got, want := w.allShards(job), "x,one,at\na,a,0\nb,b,1\nc,c,4\nd,d,5\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		job, told = w.extend("r", keyedMap, "x", "d", "e")
		if told != (run.Extended{Rows: 1, Duplicates: 1}) {
			t.Errorf("%+v", told)
		}
		if got, want := w.allShards(job), "x,one,at\na,a,0\nb,b,1\nc,c,4\nd,d,5\ne,e,7\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		if n := len(w.provider.log()); n != 5 {
			t.Errorf("%d calls for five rows", n)
		}
		rec := w.reload(job).Run
		if rec.Counts != (sheet.Counts{Completed: 5}) || rec.Sealed.Total != 8 || rec.Sealed.Duplicates != 3 || rec.Sealed.Rows != 5 {
			t.Errorf("%+v %+v", rec.Counts, rec.Sealed)
		}
		for _, page := range pages {
			if now, err := tbl.Get(t.Context(), page.Key); err != nil || !bytes.Equal(now.Data, page.Data) {
				t.Errorf("%s was written again: %v", page.Key, err)
			}
		}
		if _, told = w.extend("r", keyedMap, "x", "a", "e"); told != (run.Extended{Duplicates: 2}) || w.reload(job).Run.Status != sheet.Completed {
			t.Errorf("without new rows: %+v, %s", told, w.reload(job).Run.Status)
		}
		w.retry("r", run.RetryOptions{}) // nothing has failed
		if again, err := w.tryStart("r", keyedMap, "x", "b", "c", "d"); err != nil || again.Run.Status != sheet.Completed {
			t.Errorf("started again with one of its inputs: %v", err)
		}
	})
}

// Existing shards keep their pages when many more come, and rows of every part can fail and be retried.
func TestX4ExtendKeepsTheRangesOfShards(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		const text = "version: 1\nname: m\nkey: x\ncolumns: [{name: one, call: a.get, when: \"${row.x.endsWith('777')}\", with: {x: \"${row.x}\"}, result: \"${result.x}\"}]\n"
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth == 0 {
				return refusal422()
			}
			return echo(a, nth)
		}
		lines := func(from, to int) []string {
			out := []string{"x"}
			for i := from; i < to; i++ {
				out = append(out, fmt.Sprint("r", i))
			}
			return out
		}
		job := w.start("r", text, lines(0, 150_000)...)
		if job.Run.Shards != 2 {
			t.Fatalf("%d shards", job.Run.Shards)
		}
		w.allShards(job)
		job, told := w.extend("r", text, lines(149_000, 420_000)...)
		if told != (run.Extended{Rows: 270_000, Duplicates: 1000}) || job.Run.Shards != 5 {
			t.Fatalf("%+v, %d shards", told, job.Run.Shards)
		}
		w.allShards(job)
		if failed := w.reload(job).Run.Counts.Failed; failed != 420 {
			t.Errorf("%d failed", failed)
		}
		if told := w.retry("r", run.RetryOptions{}); told.Rows != 420 {
			t.Errorf("%+v", told)
		}
		got := w.allShards(w.reload(job))
		if rec := w.reload(job).Run; rec.Counts != (sheet.Counts{Completed: 420_000}) || strings.Count(got, "\n") != 420_001 || !strings.Contains(got, "\nr419777,r419777\n") {
			t.Errorf("%+v", rec.Counts)
		}
	})
}

func TestX4ExtendRefuses(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.allShards(w.start("done", keyedMap, "x", "a"))
		w.start("new", keyedMap, "x", "a")
		for id, want := range map[string]error{"none": sheet.ErrNoRun, "new": run.ErrAtWork} {
			if _, _, err := w.tryExtend(id, keyedMap, "x", "b"); !errors.Is(err, want) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if _, _, err := w.tryExtend("done", callA, "x", "b"); !errors.Is(err, run.ErrOtherRun) {
			t.Error(err)
		}
		if _, _, err := w.tryExtend("done", keyedMap, "y", "b"); err == nil || !strings.Contains(err.Error(), `no column "x"`) {
			t.Error(err)
		}
	})
}

// A cancelled run that is extended goes on with what it had left, and with the new rows.
func TestX4ExtendOfACancelledRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = scripted("a.get", `"b"`, holds(time.Hour))
		job := w.start("r", keyedMap, "x", "a", "b", "c")
		wait := w.parked(job)
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		w.settle("r")
		job, _ = w.extend("r", keyedMap, "x", "c", "d")
		if got, want := w.allShards(job), "x,one,at\na,a,0\nb,b,1\nc,c,2\nd,d,4\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		if held := w.provider.times("a.get", `"b"`); len(held) != 2 || held[1]-held[0] < wait {
			t.Errorf("the held row was asked for at %v", held)
		}
	})
}

// The store dies at every write of an extension: the run is as it was, or extended, and extending it again comes to the same.
func TestX4CrashAtEveryWriteOfAnExtension(t *testing.T) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			job := w.start("r1", keyedMap, "x", "a", "b")
			w.allShards(job)
			f.CrashAt(n, []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed}[n%2])
			_, _, err := w.tryExtend("r1", keyedMap, "x", "b", "c")
			crashed = f.Crashed()
			if crashed != (err != nil) {
				t.Fatalf("write %d: crashed %v, and it said %v", n, crashed, err)
			}
			f.Heal()
			w.countsAgree()
			if rec := w.reload(job).Run; rec.Status.Ended() {
				if job, _, err = w.tryExtend("r1", keyedMap, "x", "b", "c"); err != nil {
					t.Fatalf("write %d: %v", n, err)
				}
			}
			if got := w.allShards(w.reload(job)); got != "x,one,at\na,a,0\nb,b,1\nc,c,3\n" || len(w.provider.log()) != 3 {
				t.Errorf("write %d: %d calls, got\n%s", n, len(w.provider.log()), got)
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}
