package run_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// more puts lines where an extension finds them.
func (w *world) more(name string, lines ...string) sheet.More {
	w.t.Helper()
	if err := w.st.Blobs.Put(w.t.Context(), name, strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		w.t.Fatal(err)
	}
	return sheet.More{Input: "more.csv", Source: sheet.Source{Object: name}}
}

func (w *world) askExtend(id, key string, more sheet.More) *sheet.Run {
	w.t.Helper()
	r, err := run.AskExtend(w.t.Context(), w.st, id, key, more)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// plans does what an execution begins with.
func (w *world) plans(id string) *run.Job {
	w.t.Helper()
	if err := run.AskedExtend(w.t.Context(), w.st, id); err != nil {
		w.t.Fatal(err)
	}
	job, err := run.LoadJob(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// stands is how the run stands, and what is asked of it.
func (w *world) stands(id string) (*sheet.Run, *sheet.Control) {
	w.t.Helper()
	r, err := sheet.Load(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	asked, err := sheet.LoadControl(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, asked
}

// What is asked for is done by the next execution; until then the run is complete, and its table is there. Asked for again
// under its key, at any time, it is done once.
func TestX4AskedExtendComputesNewRowsOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.allShards(w.start("r", keyedMap, "x", "a", "b"))
		more := w.more("uploads/1", "x", "b", "c", "d")
		again := func(status sheet.Status) {
			t.Helper()
			if r := w.askExtend("r", "k1", more); r.Status != status {
				t.Errorf("asked again: %s, want %s", r.Status, status)
			}
		}
		again(sheet.Completed)
		again(sheet.Completed)
		r, asked := w.stands("r")
		if !asked.Extends(r) || asked.Execution(r) != 1 || r.Execution() != 0 {
			t.Fatalf("%+v, execution %d", asked, asked.Execution(r))
		}
		if got := w.export(w.reload(&run.Job{Run: r})); got != "x,one,at\na,a,0\nb,b,1\n" {
			t.Errorf("meanwhile its table is\n%s", got)
		}
		job := w.plans("r")
		told := *job.Run.Extension
		if told.At = (time.Time{}); told != (sheet.Extension{Number: 1, Rows: 2, Duplicates: 1}) || job.Run.Shards != 2 {
			t.Fatalf("%+v, %d shards", told, job.Run.Shards)
		}
		again(sheet.Running)
		if r, asked = w.stands("r"); asked.Extends(r) || asked.Execution(r) != 1 {
			t.Errorf("%+v, execution %d", asked, asked.Execution(r))
		}
		if got := w.allShards(w.plans("r")); got != "x,one,at\na,a,0\nb,b,1\nc,c,3\nd,d,4\n" {
			t.Errorf("got\n%s", got)
		}
		again(sheet.Completed)
		if job := w.plans("r"); job.Run.Status != sheet.Completed || len(w.provider.log()) != 4 {
			t.Errorf("%s, %d calls for four rows", job.Run.Status, len(w.provider.log()))
		}
		w.askExtend("r", "k2", w.more("uploads/2", "x", "e"))
		if got := w.allShards(w.plans("r")); !strings.HasSuffix(got, "d,d,4\ne,e,5\n") {
			t.Errorf("got\n%s", got)
		}
	})
}

// A source that cannot be taken, or that has nothing new, leaves the run as it was, whatever that is, and the record tells. The
// next execution has another name. What was refused can be asked for again.
func TestX4AskedExtendLeavesTheRunAsItWas(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), `"b"`) {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		w.parked(w.start("paused", keyedMap, "x", "a", "b"))
		w.parked(w.start("cancelled", keyedMap, "x", "a", "b"))
		w.provider.answer = echo
		w.allShards(w.start("completed", keyedMap, "x", "a", "b"))
		for id, stop := range map[string]error{"paused": run.Pause(t.Context(), w.st, "paused", "lunch"), "cancelled": run.Cancel(t.Context(), w.st, "cancelled")} {
			if stop != nil {
				t.Fatal(stop)
			}
			w.settle(id)
		}
		for _, status := range []sheet.Status{sheet.Paused, sheet.Cancelled, sheet.Completed} {
			id := string(status)
			before, _ := w.stands(id)
			late := sheet.More{Input: "more.csv", Source: sheet.Source{Object: "uploads/" + id}}
			for n, step := range []struct {
				more sheet.More
				says string
			}{
				{w.more("uploads/1", "y", "c"), "no column"},
				{w.more("uploads/2", "x", "c", `""`), "row 4 (line 3)"},
				{late, "is not there; upload it first"},
				{w.more("uploads/3", "x", "b", "a"), ""},
			} {
				w.askExtend(id, "k"+step.says, step.more)
				_, asked := w.stands(id)
				execution := asked.Execution(before) + n
				r := w.plans(id).Run
				if r.Status != status || r.FinishedAt != before.FinishedAt || r.Shards != 1 || r.Sealed.Digest != before.Sealed.Digest ||
					!strings.Contains(r.Extension.Error, step.says) || (r.Extension.Error == "") != (step.says == "") {
					t.Errorf("%s: %s %+v", id, r.Status, r.Extension)
				}
				if _, asked = w.stands(id); asked.Execution(r) != execution {
					t.Errorf("%s: execution %d, want %d", id, asked.Execution(r), execution)
				}
			}
			if r, _ := w.stands(id); r.Extension.Duplicates != 2 || r.Extension.Rows != 0 {
				t.Errorf("%+v", r.Extension)
			}
			w.more("uploads/"+id, "x", "c")
			w.askExtend(id, "kis not there; upload it first", late)
			time.Sleep(time.Hour)
			if got := w.allShards(w.plans(id)); got != "x,one,at\na,a,0\nb,b,1\nc,c,2\n" {
				t.Errorf("%s: got\n%s", id, got)
			}
		}
	})
}

// While an extension is asked for and not done, the run answers as one that is at work; and a run at work is not extended.
func TestX4AskedExtendRefuses(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.start("running", keyedMap, "x", "a")
		w.allShards(w.start("r", keyedMap, "x", "a"))
		one, two := w.more("uploads/1", "x", "b"), w.more("uploads/2", "x", "c")
		ask := func(id, key string, more sheet.More) error {
			_, err := run.AskExtend(t.Context(), w.st, id, key, more)
			return err
		}
		if err := ask("none", "k", one); !errors.Is(err, sheet.ErrNoRun) {
			t.Error(err)
		}
		if err := ask("running", "k", one); !errors.Is(err, run.ErrAtWork) || !strings.Contains(err.Error(), "when it has ended, or is paused") {
			t.Error(err)
		}
		w.askExtend("r", "k", one)
		if err := ask("r", "k", two); !errors.Is(err, run.ErrOtherSource) {
			t.Error(err)
		}
		_, retryErr := run.AskRetry(t.Context(), w.st, "r", run.RetryOptions{})
		_, resumeErr := run.Continue(t.Context(), w.st, "r", sheet.Budget{})
		_, _, extendErr := w.tryExtend("r", keyedMap, "x", "b")
		for name, err := range map[string]error{"another": ask("r", "l", two), "pause": run.Pause(t.Context(), w.st, "r", ""),
			"retry": retryErr, "resume": resumeErr, "at once": extendErr} {
			if !errors.Is(err, run.ErrAtWork) || !strings.Contains(err.Error(), "it is being extended") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := w.allShards(w.plans("r")); got != "x,one,at\na,a,0\nb,b,1\n" {
			t.Errorf("got\n%s", got)
		}
	})
}

// A run that was cancelled before its input was read has nothing to be extended.
func TestX4ARunWithoutRowsIsNotExtended(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.more("uploads/0", "x", "a")
		p, err := run.Prepare(run.Request{ID: "r", InputName: "in.csv", Source: &sheet.Source{Object: "uploads/0"},
			Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(keyedMap), ToolsFile: "tools.yaml", Tools: []byte(tools)}})
		if err == nil {
			_, err = p.Register(t.Context(), w.st)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		w.settle("r")
		_, err = run.AskExtend(t.Context(), w.st, "r", "k", w.more("uploads/1", "x", "b"))
		_, _, extendErr := w.tryExtend("r", keyedMap, "x", "b")
		_, retryErr := run.AskRetry(t.Context(), w.st, "r", run.RetryOptions{})
		for _, err := range []error{err, extendErr, retryErr} {
			if !errors.Is(err, run.ErrNoInput) || !strings.Contains(err.Error(), "when it was resumed") {
				t.Error(err)
			}
		}
	})
}

// A cancellation withdraws an extension that is not done yet, and stops one that is.
func TestX4CancelWithdrawsAnExtension(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.allShards(w.start("r", keyedMap, "x", "a"))
		w.askExtend("r", "k", w.more("uploads/1", "x", "b"))
		cancel := func() {
			t.Helper()
			if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if r := w.plans("r").Run; r.Status != sheet.Completed || r.Shards != 1 || !strings.Contains(r.Extension.Error, "it was cancelled") {
			t.Errorf("%s %+v", r.Status, r.Extension)
		}
		w.askExtend("r", "k", w.more("uploads/1", "x", "b"))
		job := w.plans("r")
		cancel()
		if res, err := job.Slice(t.Context(), w.ports(), 1, w.settings); err != nil || res.Outcome != run.Cancelled {
			t.Errorf("%+v, %v", res, err)
		}
		if r := w.settle("r"); r.Status != sheet.Cancelled || r.Sealed.Rows != 2 || len(w.provider.log()) != 1 {
			t.Errorf("%s, %d rows, %d calls", r.Status, r.Sealed.Rows, len(w.provider.log()))
		}
		w.askExtend("r", "l", w.more("uploads/2", "x", "c"))
		if got := w.allShards(w.plans("r")); got != "x,one,at\na,a,0\nb,b,1\nc,c,2\n" {
			t.Errorf("got\n%s", got)
		}
	})
}
