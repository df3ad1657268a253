package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

func (w *world) retry(id string, how run.RetryOptions) run.Retried {
	w.t.Helper()
	told, err := run.Retry(w.t.Context(), w.ports(), w.settings, id, how)
	if err != nil {
		w.t.Fatal(err)
	}
	return told
}

func refusal422() call.Answer {
	return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no", Status: 422, Dispatched: true}}
}

// A long row: a call, a waterfall whose first step is not accepted, a call that fails, and one behind it.
const longRow = `
version: 1
name: long
key: x
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - name: two
    waterfall:
      - {call: a.get, with: {x: "${row.x}-1"}, accept: "${false}"}
      - {call: a.get, with: {x: "${row.x}-2"}, result: "${result.x}"}
  - {name: soft, call: a.get, with: {x: "${row.x}-soft"}, onError: {value: none}}
  - {name: three, call: b.get, with: {x: "${row.x}"}, result: "${result.x + vars.tail}"}
  - {name: four, call: b.get, with: {x: "${cells.three}4"}, result: "${result.x}"}
vars: {tail: "!"}
`

// failsAt refuses the calls of a tool with such an input as often as it is told, then echoes.
func failsAt(tool, input string, times int) func(call.Attempt, int) call.Answer {
	return func(a call.Attempt, nth int) call.Answer {
		switch {
		case a.Tool == tool && string(a.Input) == `{"x":"`+input+`"}` && nth < times, strings.Contains(string(a.Input), "soft"):
			return refusal422()
		}
		return echo(a, nth)
	}
}

// The failed row is run again from the call that failed; what its earlier calls brought is kept, also what a waterfall did
// not accept and what onError made good. No other row is touched.
func TestX4RetryMakesTheFailedCallAgainAndNoOther(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = failsAt("b.get", "r1", 1)
		job := w.start("r", longRow, rows(3)...)
		w.finish(job)
		if c := w.reload(job).Run.Counts; c != (sheet.Counts{Completed: 2, Failed: 1}) {
			t.Fatalf("%+v", c)
		}
		before := w.provider.log()
		told := w.retry("r", run.RetryOptions{})
		if rec := w.reload(job).Run; told != (run.Retried{Rows: 1}) || rec.Status != sheet.Running || rec.Counts != (sheet.Counts{Completed: 2}) || !rec.FinishedAt.IsZero() {
			t.Errorf("%+v, %s, %+v", told, rec.Status, rec.Counts)
		}
		w.countsOf("r")
		got := w.finish(w.reload(job))
		want := "x,one,two,soft,three,four\nr0,r0,r0-2,none,r0!,r0!4\nr1,r1,r1-2,none,r1!,r1!4\nr2,r2,r2-2,none,r2!,r2!4\n"
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		var again []string
		for _, a := range w.provider.log()[len(before):] {
			again = append(again, a.tool+a.input)
		}
		if !slices.Equal(again, []string{`b.get{"x":"r1"}`, `b.get{"x":"r1!4"}`}) {
			t.Errorf("made again: %v", again)
		}
		if rec := w.reload(job).Run; rec.Status != sheet.Completed || rec.Counts != (sheet.Counts{Completed: 3}) {
			t.Errorf("%s, %+v", rec.Status, rec.Counts)
		}
		if told := w.retry("r", run.RetryOptions{}); told != (run.Retried{}) || w.reload(job).Run.Status != sheet.Completed {
			t.Errorf("nothing has failed any more: %+v", told)
		}
	})
}

// The last call of a row succeeds, and an expression behind it fails: the call is paid for once.
func TestX4RetryKeepsTheLastCallsResult(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", "version: 1\nname: m\ncolumns:\n  - {name: one, call: a.get, with: {x: \"${row.x}\"}, result: \"${result.x}\"}\n"+
			"  - {name: n, value: \"${1 / int(cells.one)}\"}\n", "x", "0", "1")
		w.finish(job)
		for range 2 {
			if told := w.retry("r", run.RetryOptions{}); told.Rows != 1 {
				t.Fatalf("%+v", told)
			}
			w.finish(w.reload(job))
		}
		if n := len(w.provider.log()); n != 2 {
			t.Errorf("%d calls for two rows", n)
		}
		if c := w.reload(job).Run.Counts; c != (sheet.Counts{Completed: 1, Failed: 1}) {
			t.Errorf("%+v", c)
		}
	})
}

// All attempts are before the call again.
func TestX4RetryHasAFreshAttemptBudget(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = broken
		job := w.start("r", callA, rows(1)...)
		w.finish(job)
		attempts := len(w.provider.log())
		w.retry("r", run.RetryOptions{})
		w.finish(w.reload(job))
		log := w.provider.log()
		if len(log) != 2*attempts || log[attempts].number != 0 || attempts < 2 {
			t.Fatalf("%d attempts, then %d, the first of them with number %d", attempts, len(log)-attempts, log[attempts].number)
		}
		if log[0].request != log[attempts].request { // R8: what came of the others is not known
			t.Errorf("another request: %s, %s", log[0].request, log[attempts].request)
		}
	})
}

// Pages without a failed row are not written, and rows that have completed stay as they are, byte for byte.
func TestX4RetryLeavesCompletedRowsAndPagesAlone(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = failsAt("a.get", "r1500", 1)
		job := w.start("r", callA, rows(4000)...)
		w.finish(job)
		old := items(t, tbl, "run/r/out", "p/")
		page1, err := sheet.LoadPage(t.Context(), w.st, "r", 1)
		if err != nil || len(old) != 4 {
			t.Fatal(len(old), err)
		}
		asked := len(w.provider.log())
		reads := len(f.Trace())
		w.retry("r", run.RetryOptions{})
		w.finish(w.reload(job))
		if n := len(w.provider.log()) - asked; n != 1 {
			t.Errorf("%d calls", n)
		}
		now := items(t, tbl, "run/r/out", "p/")
		for _, item := range now {
			was := slices.ContainsFunc(old, func(o table.Item) bool { return o.Key == item.Key && string(o.Data) == string(item.Data) })
			if !was && !strings.HasPrefix(item.Sort, "p/00000001/") {
				t.Errorf("written: %s", item.Sort)
			}
		}
		after, err := sheet.LoadPage(t.Context(), w.st, "r", 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range after.Rows {
			if i != 500 && fmt.Sprint(after.Rows[i]) != fmt.Sprint(page1.Rows[i]) {
				t.Fatalf("row %d is %+v, was %+v", i, after.Rows[i], page1.Rows[i])
			}
		}
		inputs := 0
		for _, e := range f.Trace()[reads:] {
			if e.Op == tabletest.OpGet && strings.HasPrefix(e.Keys[0].Part, "run/r/in") && strings.HasPrefix(e.Keys[0].Sort, "p") {
				inputs++
			}
		}
		if inputs != 1+4 { // of the page with the row, and of all for the export
			t.Errorf("%d reads of input pages", inputs)
		}
	})
}

// A failed call with an unknown outcome is not repeated unless somebody says so.
func TestX4T2RetryOfUnknownOutcomes(t *testing.T) {
	const text = `
version: 1
name: posting
columns:
  - {name: sent, call: a.post, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: after, value: "${cells.sent == null ? 'nothing' : cells.sent + '.'}"}
`
	for _, test := range []struct {
		how   run.RetryOptions
		told  run.Retried
		table string
		posts int
	}{
		{run.RetryOptions{}, run.Retried{Unknown: 1}, "", 3},
		{run.RetryOptions{Unknown: run.RepeatUnknown}, run.Retried{Rows: 1}, "x,sent,after\nr0,r0,r0.\nr1,r1,r1.\nr2,r2,r2.\n", 4},
		{run.RetryOptions{Unknown: run.AcceptUnknown}, run.Retried{Rows: 1}, "x,sent,after\nr0,r0,r0.\nr1,,nothing\nr2,r2,r2.\n", 3},
		{run.RetryOptions{Unknown: run.AcceptUnknown, Value: json.RawMessage(`"seen"`)}, run.Retried{Rows: 1}, "x,sent,after\nr0,r0,r0.\nr1,seen,seen.\nr2,r2,r2.\n", 3},
	} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				if strings.Contains(string(a.Input), "r1") && nth == 0 {
					return unknownOutcome(a, nth)
				}
				return echo(a, nth)
			}
			job := w.start("r", text, rows(3)...)
			first := w.finish(job)
			if !strings.Contains(first, "OUTCOME_UNKNOWN") {
				t.Fatal(first)
			}
			if told := w.retry("r", test.how); told != test.told {
				t.Errorf("%+v: told %+v", test.how, told)
			}
			if test.told.Rows == 0 {
				if rec := w.reload(job).Run; rec.Status != sheet.Completed {
					t.Errorf("nothing was to be done, and the run is %s", rec.Status)
				}
			} else if got := w.finish(w.reload(job)); got != test.table {
				t.Errorf("%+v: got\n%s", test.how, got)
			}
			if n := len(w.provider.log()); n != test.posts {
				t.Errorf("%+v: %d posts", test.how, n)
			}
		})
	}
}

// A step of a waterfall has an unknown outcome, and the row failed by another one: only that is repeated.
func TestX4T2RetryLeavesAnUnknownStepAlone(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case a.Tool == "a.post":
				return unknownOutcome(a, nth)
			case nth == 0:
				return refusal422()
			}
			return echo(a, nth)
		}
		job := w.start("r", "version: 1\nname: m\ncolumns:\n  - name: c\n    waterfall:\n      - {call: a.post, with: {x: \"${row.x}\"}}\n"+
			"      - {call: a.get, with: {x: \"${row.x}\"}, result: \"${result.x}\"}\n", rows(1)...)
		w.finish(job)
		if told := w.retry("r", run.RetryOptions{}); told != (run.Retried{Rows: 1}) {
			t.Errorf("%+v", told)
		}
		if got := w.finish(w.reload(job)); got != "x,c\nr0,r0\n" || w.provider.calls("a.post", "") != 1 || w.provider.calls("a.get", "") != 2 {
			t.Errorf("%q, %+v", got, w.provider.log())
		}
	})
}

func TestX4RetryRefuses(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = failsAt("a.get", "r0", 9)
		w.start("r", callA, rows(1)...)
		if _, err := run.Retry(t.Context(), w.ports(), w.settings, "r", run.RetryOptions{}); !errors.Is(err, run.ErrAtWork) {
			t.Error(err)
		}
		for _, how := range []run.RetryOptions{{Unknown: "maybe"}, {Unknown: run.AcceptUnknown, Value: json.RawMessage("{")}} {
			if _, err := run.Retry(t.Context(), w.ports(), w.settings, "r", how); err == nil || errors.Is(err, run.ErrAtWork) {
				t.Errorf("%+v: %v", how, err)
			}
		}
		if _, err := run.Retry(t.Context(), w.ports(), w.settings, "none", run.RetryOptions{}); !errors.Is(err, sheet.ErrNoRun) {
			t.Error(err)
		}
	})
}

// A cancelled run that is retried goes on with its failed rows and with those that had not ended; a row that is held keeps
// its place, and is not run twice.
func TestX4RetryOfACancelledRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		failing := failsAt("a.get", "r1", 1)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r3") && nth == 0 {
				return heldFor(time.Hour)
			}
			return failing(a, nth)
		}
		job := w.start("r", callA, rows(6)...)
		wait := w.parked(job)
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		if rec := w.settle("r"); rec.Counts != (sheet.Counts{Completed: 2, Failed: 1}) {
			t.Fatalf("%+v", rec.Counts)
		}
		w.retry("r", run.RetryOptions{})
		w.countsOf("r")
		got := w.finish(w.reload(job))
		if want := "x,one\nr0,r0\nr1,r1\nr2,r2\nr3,r3\nr4,r4\nr5,r5\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		held := w.provider.times("a.get", "r3")
		if len(held) != 2 || held[1]-held[0] < wait {
			t.Errorf("the held row was asked for at %v", held)
		}
		if n := len(w.provider.log()); n != 8 {
			t.Errorf("%d calls", n)
		}
	})
}

// The verb dies at every write there is. Whatever moment it was, the run can be retried again, or it is continued, and in the
// end every row has completed; no call that has succeeded is made again.
func TestX4CrashAtEveryWriteOfARetry(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		t.Run(fmt.Sprint("retry/", kind), func(t *testing.T) { crashRetry(t, kind, "retry", 0) })
		t.Run(fmt.Sprint("continue/", kind), func(t *testing.T) { crashRetry(t, kind, "continue", 48*time.Hour) })
	}
}

func crashRetry(t *testing.T, kind tabletest.Kind, after string, keep time.Duration) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.settings.Keep = keep
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				if a.Tool == "b.get" && (strings.HasSuffix(string(a.Input), `5"}`)) && nth == 0 {
					return refusal422()
				}
				return echo(a, nth)
			}
			job := w.start("r1", twoCalls, rows(1010)...)
			w.finish(job)
			failed := w.reload(job).Run.Counts.Failed
			alive := func(p run.Ports) run.Ports { p.Alive = func(string) bool { return false }; return p }
			f.CrashAt(n, kind)
			_, err := run.Retry(t.Context(), alive(w.ports()), w.settings, "r1", run.RetryOptions{})
			crashed = f.Crashed()
			if crashed != (err != nil) {
				t.Fatalf("write %d: crashed %v, and it said %v", n, crashed, err)
			}
			f.Heal()
			w.countsAgree()
			toEnd := func() {
				for {
					job = w.reload(job)
					res, err := job.Slice(t.Context(), alive(w.ports()), 0, w.settings)
					if err != nil {
						t.Fatalf("write %d: %v", n, err)
					}
					if res.Outcome == run.Done {
						break
					}
				}
				if _, err := w.tryExport(job); err != nil {
					t.Fatalf("write %d: %v", n, err)
				}
			}
			if crashed && after != "retry" && w.reload(job).Run.Status != sheet.Completed {
				w.goOn("r1")
				toEnd()
			}
			if rec := w.reload(job).Run; rec.Status == sheet.Completed || rec.Status == sheet.Paused {
				if _, err := run.Retry(t.Context(), alive(w.ports()), w.settings, "r1", run.RetryOptions{}); err != nil {
					t.Fatalf("write %d: retried again: %v", n, err)
				}
			}
			w.countsAgree()
			if w.reload(job).Run.Status != sheet.Completed {
				toEnd()
			}
			rec := w.reload(job).Run
			if rec.Status != sheet.Completed || rec.Counts != (sheet.Counts{Completed: 1010}) {
				t.Errorf("write %d: %s, %+v", n, rec.Status, rec.Counts)
			}
			if calls := int64(len(w.provider.log())); calls != 2*1010+failed {
				t.Errorf("write %d: %d calls, want %d and %d again", n, calls, 2*1010, failed)
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}

// countsOf holds what the record says of a run against its rows.
func (w *world) countsOf(id string) {
	w.t.Helper()
	job, err := run.LoadJob(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	statuses := w.statuses(job, w.st)
	counts := sheet.Counts{Completed: int64(count(statuses, run.StatusCompleted)), Failed: int64(count(statuses, run.StatusFailed))}
	if counts != job.Run.Counts {
		w.t.Errorf("the record says %+v, the rows say %+v", job.Run.Counts, counts)
	}
}
