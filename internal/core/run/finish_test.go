package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// told calls a provider for each row, and tells the other one when all is done.
const told = `
version: 1
name: leads
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
finish:
  - {call: b.get, with: {x: "${run.name}: ${run.completed} done, ${run.failed} failed"}, result: "${result.x}"}
  - {call: a.post, with: {x: "${run.id}", calls: "${run.calls.dispatched}"}}
`

// end brings a run whose rows have ended to its end, with the waits between, and a fresh process after each of them. It
// returns the run as it stands then, and what was seen during the waits.
func (w *world) end(id string, seen func(*run.Job)) *run.Job {
	w.t.Helper()
	for {
		job, err := run.LoadJob(w.t.Context(), w.st, id)
		if err != nil {
			w.t.Fatal(err)
		}
		res, err := job.Finish(w.t.Context(), w.ports(), w.settings, nil)
		switch {
		case err != nil:
			w.t.Fatal(err)
		case res.Outcome == run.Done:
			return job
		case res.Outcome == run.Parked:
			w.parks = append(w.parks, res.WakeAt)
			if seen != nil {
				seen(job)
			}
			time.Sleep(time.Until(res.WakeAt))
		case res.Outcome != run.More:
			w.t.Fatal(res.Outcome)
		}
	}
}

// rowsDone starts a run and works its rows.
func (w *world) rowsDone(mapText string, lines ...string) *run.Job {
	w.t.Helper()
	job := w.start("r", mapText, lines...)
	if res := w.slice(job); res.Outcome != run.Done {
		w.t.Fatal(res.Outcome)
	}
	return job
}

func (w *world) stored(name string) string {
	w.t.Helper()
	r, err := w.st.Blobs.Get(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// The steps come last, once, in order; the table is there before the first of them, and the record is not yet.
func TestFinishComesAfterTheTable(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if string(a.Input) == `{"x":"r1"}` {
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
			}
			return echo(a, nth)
		}
		job := w.rowsDone(told, rows(3)...)
		tables := 0
		write := func(ctx context.Context) error {
			tables++
			if n := w.provider.calls("b.get", ""); n > 0 {
				t.Errorf("%d steps were made before the table was written", n)
			}
			var b bytes.Buffer
			err := job.Export(ctx, w.ports(), &b, "csv")
			if want := "x,one,_status,_error\nr0,r0,completed,\nr1,,failed,one: HTTP_422: no\nr2,r2,completed,\n"; b.String() != want {
				t.Errorf("the table before the steps is %q", b.String())
			}
			return err
		}
		for range 2 { // finishing again changes nothing
			if res, err := job.Finish(t.Context(), w.ports(), w.settings, write); err != nil || res.Outcome != run.Done {
				t.Fatal(res, err)
			}
		}
		want := []string{`b.get {"x":"leads: 2 done, 1 failed"}`, `a.post {"calls":3,"x":"r"}`}
		var got []string
		for _, a := range w.provider.asked[3:] {
			got = append(got, a.tool+" "+a.input)
		}
		if d := cmp.Diff(want, got); d != "" || tables != 1 {
			t.Errorf("%d tables, %s", tables, d)
		}
		rec := w.record("r")
		steps := []sheet.FinishStep{{Call: "b.get", Result: json.RawMessage(`"leads: 2 done, 1 failed"`)}, {Call: "a.post"}}
		if d := cmp.Diff(steps, rec.Finish); d != "" || rec.Status != sheet.Completed || len(rec.Warnings()) > 0 || rec.Counts != (sheet.Counts{Completed: 2, Failed: 1}) {
			t.Errorf("%+v %s", rec, d)
		}
		if s := rec.Stats; s.Logical != 5 || s.Dispatched != 5 || s.Slices != 2 {
			t.Errorf("the steps are not in the stats: %+v", s)
		}
		for r, err := range sheet.List(t.Context(), w.st) {
			if err != nil || r.ID != "r" {
				t.Errorf("listed: %v, %v", r, err)
			}
		}
	})
}

// A provider's quota is used up when the call at the end is made, and again when its window has passed: both waits are
// waited, each to its own end, by processes that know nothing of each other.
func TestH9EachQuotaWindowHasItsOwnWait(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "done", holds(time.Hour), holds(time.Hour), holds(30*time.Minute))
		w.rowsDone(told, rows(2)...)
		began := time.Now()
		job := w.end("r", func(job *run.Job) {
			rec := w.record("r")
			status, wake, err := run.Standing(t.Context(), w.st, rec)
			if err != nil || status != sheet.Parked || !wake.Equal(w.parks[len(w.parks)-1]) {
				t.Errorf("it stands %s until %v, %v", status, wake, err)
			}
			var b bytes.Buffer
			if err := job.Export(t.Context(), w.ports(), &b, "csv"); err != nil || b.String() != "x,one\nr0,r0\nr1,r1\n" {
				t.Errorf("the table while a step waits: %q, %v", b.String(), err)
			}
		})
		var waits []time.Duration
		for _, at := range w.parks {
			waits = append(waits, at.Sub(began).Round(time.Second))
		}
		if want := []time.Duration{time.Hour, 2 * time.Hour, 150 * time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("waited until %v, want %v", waits, want)
		}
		var at []time.Duration
		for _, a := range w.provider.asked {
			if a.tool == "b.get" {
				at = append(at, a.at.Round(time.Second))
			}
		}
		if want := []time.Duration{0, time.Hour, 2 * time.Hour, 150 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
		if job.Run.Stats.Parks != 3 || job.Run.Stats.Refused429 != 3 || len(job.Run.Warnings()) > 0 || w.provider.calls("a.post", "") != 1 {
			t.Errorf("%+v, %v", job.Run.Stats, job.Run.Warnings())
		}
	})
}

// A short hold is waited out by the process that meets it (R1), as a row's would be.
func TestFinishWaitsShortHoldsOut(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "done", holds(2*time.Second))
		w.rowsDone(told, rows(1)...)
		if w.end("r", nil); len(w.parks) != 0 || w.provider.calls("b.get", "") != 2 {
			t.Errorf("%d parks", len(w.parks))
		}
	})
}

const failing = `
version: 1
name: leads
vars: {n: 0}
columns:
  - {name: one, value: "${row.x}"}
finish:
  - {call: a.post, with: {x: broken}}
  - {call: b.get, with: {x: refused}, onError: {value: {code: "${run.id}"}}}
  - {call: b.get, with: {x: "${1 / vars.n}"}}
  - {publish: {name: never, public: false, content: "${run.total / vars.n}"}}
  - {call: b.get, with: {x: down}}
  - {call: b.get, with: {x: last}}
`

// A step that fails is a warning. The run has completed all the same, and the steps after it are made.
func TestFinishAFailingStepIsAWarning(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case strings.Contains(string(a.Input), "broken"):
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 503, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "503"}}
			case strings.Contains(string(a.Input), "refused"):
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 403, Error: &call.Error{Code: "HTTP_403", Message: "no"}}
			case strings.Contains(string(a.Input), "down"):
				return broken(a, nth)
			}
			return echo(a, nth)
		}
		w.rowsDone(failing, rows(1)...)
		job := w.end("r", nil)
		want := []string{
			"finish step 1 (a.post): OUTCOME_UNKNOWN: 503",
			"finish step 3 (b.get): EXPRESSION: ${1 / vars.n}: division by zero",
			"finish step 4 (publish never): EXPRESSION: ${run.total / vars.n}: division by zero",
			"finish step 5 (b.get): HTTP_503: try later",
		}
		rec := w.record("r")
		if d := cmp.Diff(want, rec.Warnings()); d != "" || rec.Status != sheet.Completed || job.Run.Status != sheet.Completed {
			t.Error(rec.Status, d)
		}
		if got := string(rec.Finish[1].Result); got != `{"code":"r"}` {
			t.Errorf("onError gave %s", got)
		}
		if n := w.provider.calls("b.get", "down"); n != 4 {
			t.Errorf("a step that fails for the moment was tried %d times, want 4", n)
		}
		if w.provider.calls("b.get", "last") != 1 || w.provider.calls("a.post", "") != 1 {
			t.Error("the last step was not made, or the first one again")
		}
		if text := w.export(job); text != "x,one\nr0,r0\n" {
			t.Errorf("%q", text)
		}
	})
}

const published = `
version: 1
name: leads
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
finish:
  - publish: {name: report.json, public: false, content: "${run}"}
  - publish: {name: note.txt, public: true, content: "${run.failed} of ${run.total} failed"}
  - publish: {name: dot.gif, public: true, content: "${base64.decode('R0lGODlhAQABAAAAACw=')}"}
`

func TestFinishPublishes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			answer := echo(a, nth)
			answer.CostMicros = 250_000
			return answer
		}
		job := w.rowsDone(published, "x", "r0", "r1")
		time.Sleep(90 * time.Second)
		w.end("r", nil)
		if got := w.stored("published/r/note.txt"); got != "0 of 2 failed" {
			t.Errorf("%q", got)
		}
		if got := w.stored("published/r/dot.gif"); got != "GIF89a\x01\x00\x01\x00\x00\x00\x00," {
			t.Errorf("%q", got)
		}
		started := job.Run.StartedAt.Truncate(time.Millisecond).Format(time.RFC3339Nano)
		finished := job.Run.StartedAt.Add(90 * time.Second).Truncate(time.Millisecond).Format(time.RFC3339Nano)
		want := fmt.Sprintf(`{"calls":{"cached":0,"dispatched":2,"logical":2,"refused429":0,"reused":0},"completed":2,"cost":0.5,"duplicates":0,"failed":0,`+
			`"finishedAt":%q,"heldMs":0,"id":"r","name":"leads","out":null,"parks":0,"residentWaitMs":0,"slices":1,"startedAt":%q,"total":2}`+"\n", finished, started)
		if d := cmp.Diff(want, w.stored("published/r/report.json")); d != "" {
			t.Error(d)
		}
		steps := []sheet.FinishStep{{Publish: "report.json", Size: len(want)}, {Publish: "note.txt", Public: true, Size: 13}, {Publish: "dot.gif", Public: true, Size: 14}}
		if d := cmp.Diff(steps, w.record("r").Finish); d != "" {
			t.Error(d)
		}
	})
}

// Every name that the language knows has a value.
func TestFinishGivesEveryFieldOfARun(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.rowsDone(published, rows(1)...)
		w.end("r", nil)
		var report map[string]any
		if err := json.Unmarshal([]byte(w.stored("published/r/report.json")), &report); err != nil {
			t.Fatal(err)
		}
		if len(report) != len(mapspec.RunFields) {
			t.Errorf("%d fields, the language knows %d", len(report), len(mapspec.RunFields))
		}
		for _, name := range mapspec.RunFields {
			if v := report[name]; v == nil && name != "out" {
				t.Errorf("%s is null", name)
			}
		}
	})
}

// A large result of a step is no burden of the record.
func TestFinishShowsShortResults(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "done") {
				return ok(map[string]any{"x": strings.Repeat("y", 1<<20)})
			}
			return echo(a, nth)
		}
		w.rowsDone(told, rows(1)...)
		w.end("r", nil)
		if d := cmp.Diff([]sheet.FinishStep{{Call: "b.get"}, {Call: "a.post"}}, w.record("r").Finish); d != "" {
			t.Error(d)
		}
	})
}

// What was to be published could not be saved: the run is not at its end, and the step is made when that is possible.
func TestFinishPublishesWhenTheStoreIsBack(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		blobs := &brokenBlobs{Store: w.st.Blobs}
		w.st.Blobs = blobs
		job := w.rowsDone(published, rows(1)...)
		blobs.broken = true
		if res, err := job.Finish(t.Context(), w.ports(), w.settings, nil); !errors.Is(err, errStore) {
			t.Fatal(res, err)
		}
		if rec := w.record("r"); rec.Status == sheet.Completed || !rec.Whole() {
			t.Errorf("%+v", rec)
		}
		blobs.broken = false
		w.end("r", nil)
		if got := w.stored("published/r/note.txt"); got != "0 of 1 failed" {
			t.Errorf("%q", got)
		}
	})
}

func TestFinishOfARunWithoutRows(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.rowsDone(told, "x")
		w.end("r", nil)
		if n := w.provider.calls("b.get", "leads: 0 done, 0 failed"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// A run that failed as a whole has no end to tell.
func TestFinishIsNotMadeForAFailedRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, _ int) call.Answer {
			return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
		}
		job := w.start("r", strings.Replace(told, "columns:", "onRowError: fail\ncolumns:", 1), rows(5)...)
		_, err := job.Slice(t.Context(), w.ports(), 0, w.settings)
		if err == nil {
			t.Fatal("no failure")
		}
		if err := job.Fail(t.Context(), w.st, err); err != nil {
			t.Fatal(err)
		}
		if n := w.provider.calls("b.get", "") + w.provider.calls("a.post", ""); n != 0 {
			t.Errorf("%d steps were made", n)
		}
	})
}

// A run that is opened again, for rows that failed, comes to its end again, and tells that one too.
func TestFinishIsMadeAtEachEnd(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.rowsDone(told, rows(2)...)
		job := w.end("r", nil)
		before := job.Run.Stats
		job.Run.Status = sheet.Running
		if err := sheet.Save(t.Context(), w.st, job.Run); err != nil {
			t.Fatal(err)
		}
		job = w.end("r", nil)
		if n := w.provider.calls("a.post", ""); n != 2 {
			t.Errorf("told %d times", n)
		}
		if s := job.Run.Stats; s.Logical != before.Logical+2 || s.Dispatched != before.Dispatched+2 || job.Run.Endings != 2 {
			t.Errorf("%+v after %+v", s, before)
		}
	})
}

// Near the deadline no step is begun; another invocation goes on, and makes none again.
func TestFinishStopsBeforeTheDeadline(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "b.get" {
				time.Sleep(29 * time.Second)
			}
			return echo(a, nth)
		}
		job := w.rowsDone(told, rows(1)...)
		set := w.settings
		for n, until := range []time.Duration{30 * time.Second, time.Minute} { // a call may take 30 s, and saving 5
			set.Deadline = time.Now().Add(until)
			if res, err := job.Finish(t.Context(), w.ports(), set, nil); err != nil || res.Outcome != run.More {
				t.Fatal(res, err)
			}
			if got := w.provider.calls("b.get", ""); got != n {
				t.Errorf("with %s left, %d steps were made, want %d", until, got, n)
			}
		}
		w.end("r", nil)
		if b, a := w.provider.calls("b.get", ""), w.provider.calls("a.post", ""); a != 1 || b != 1 {
			t.Errorf("made %d and %d times", b, a)
		}
	})
}

// Two invocations at once: one works, the other is told when to look again (X2).
func TestX2OneAtATimeFinishes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = slowEcho(10 * time.Second)
		w.rowsDone(told, rows(1)...)
		ended := make(chan *run.Job)
		go func() { ended <- w.end("r", nil) }()
		time.Sleep(5 * time.Second)
		other, err := run.LoadJob(t.Context(), w.st, "r")
		if err != nil {
			t.Fatal(err)
		}
		ports := w.ports()
		if res, err := other.Finish(t.Context(), ports, w.settings, nil); err != nil || res.Outcome != run.Busy || !res.WakeAt.After(time.Now()) {
			t.Errorf("%+v, %v", res, err)
		}
		<-ended
		if n := w.provider.calls("b.get", "") + w.provider.calls("a.post", ""); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

// brokenBlobs is a blob store that is away now and then.
type brokenBlobs struct {
	blob.Store
	broken bool
}

func (b *brokenBlobs) Put(ctx context.Context, name string, data io.Reader) error {
	if b.broken {
		return errStore
	}
	return b.Store.Put(ctx, name, data)
}
