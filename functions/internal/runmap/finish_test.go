package runmap

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/ending"
	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// quota answers rows at once, and holds the calls of `finish` for an hour each time, as often as it is told.
type quota struct {
	provider
	windows int
	told    []string
}

func (q *quota) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	if !strings.Contains(string(batch[0].Input), "done") {
		return q.provider.Execute(ctx, batch, deliver)
	}
	q.told = append(q.told, string(batch[0].Input))
	if len(q.told) <= q.windows {
		deliver(0, call.Answer{Outcome: call.Held, Until: time.Now().Add(time.Hour), Scope: "a-1", Dispatched: true, Status: 429})
		return nil
	}
	deliver(0, call.Answer{Outcome: call.Result, Value: json.RawMessage(`"y"`), Dispatched: true, Status: 200})
	return nil
}

const finishing = calling + `finish:
  - {call: a.get, with: {x: "${run.completed} done"}}
  - {publish: {name: report.txt, public: false, content: "${run.completed} of ${run.total}"}}
  - {publish: {name: broken, public: false, content: "${1 / run.failed}"}}
`

func (w *world) text(name string) string {
	w.t.Helper()
	object, err := w.Store.Blobs.Get(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(object)
	if err = errors.Join(err, object.Close()); err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// The call at the end meets two quota windows in a row: the machine waits for each, the table can be fetched meanwhile,
// and the end is told once, when it has come.
func TestH9FinishParksForEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		q := &quota{windows: 2}
		w := newWorld(t, q)
		w.Settings.Linger = 0
		w.registerMap("leads-2026-01", finishing, "x\n1\n2\n")
		w.must(sample(t, "runmap-plan-request.json"), &PlanResult{})
		w.must(sample(t, "runmap-slice-request.json"), &SliceResult{})
		var fin FinishResult
		for window := range 2 {
			w.must(sample(t, "runmap-finish-request.json"), &fin)
			if window == 0 {
				expect(t, "runmap-finish-response-parked.json", fin)
			}
			if got := w.text(ending.Export("leads-2026-01")); got != "x,y\n1,y\n2,y\n" {
				t.Errorf("the table is %q", got)
			}
			if rec := w.record("leads-2026-01"); !rec.Whole() || rec.Status.Ended() || w.listed() != 1 || len(w.board.events) != 0 {
				t.Errorf("while a step waits: %+v", rec)
			}
			wake, err := time.Parse(time.RFC3339, fin.WakeAt)
			if err != nil || fin.Outcome != "parked" {
				t.Fatal(fin, err)
			}
			time.Sleep(time.Until(wake))
		}
		for range 2 {
			w.must(sample(t, "runmap-finish-request.json"), &fin)
			if fin.Outcome != "done" || fin.Status != sheet.Completed {
				t.Errorf("%+v", fin)
			}
		}
		if len(q.told) != 3 || w.listed() != 0 || len(w.board.events) != 2 { // told again when finished again
			t.Errorf("%v, %d listed, %d events", q.told, w.listed(), len(w.board.events))
		}
		if told := w.board.events[0].Detail; len(told.Warnings) != 1 || !strings.HasPrefix(told.Warnings[0], "finish step 3 (publish broken): EXPRESSION: ") {
			t.Errorf("told %+v", told)
		}
		if got := w.text(run.PublishedName("leads-2026-01", "report.txt")); got != "2 of 2" {
			t.Errorf("published %q", got)
		}
	})
}

// A run that is paused while its last step waits is no business of the machine any more, and goes on when it is told to.
func TestFinishThatIsPausedEndsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &quota{windows: 1})
		w.registerMap("r", finishing, "x\n1\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
		var fin FinishResult
		w.must(`{"op":"finish","run":"r"}`, &fin)
		if err := run.Pause(t.Context(), w.Store, "r", "lunch"); err != nil {
			t.Fatal(err)
		}
		w.must(`{"op":"finish","run":"r"}`, &fin)
		if fin.Outcome != "done" || fin.Status != sheet.Paused || w.record("r").Status != sheet.Paused || len(w.ends()) != 0 {
			t.Errorf("%+v, %v", fin, w.board.events)
		}
		if _, err := run.Continue(t.Context(), w.Store, "r", sheet.Budget{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		w.must(`{"op":"finish","run":"r"}`, &fin)
		if fin.Outcome != "done" || fin.Status != sheet.Completed || len(w.ends()) != 1 {
			t.Errorf("%+v", fin)
		}
	})
}

// Steps that wait again and again are asked for less often after a while, so that the execution's history is not filled.
func TestFinishKeepsTheHistoryShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{windows: 1}
		w := newWorld(t, q)
		w.registerMap("r", finishing, "x\n1\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
		rec := w.record("r")
		cp := &sheet.Checkpoint{Stats: sheet.Stats{Slices: patience + 1}}
		if err := cp.Save(t.Context(), w.Store, rec.FinishID(), 0); err != nil {
			t.Fatal(err)
		}
		for _, soon := range []time.Duration{time.Second, time.Hour} {
			res, err := w.finished(t.Context(), rec, run.Result{Outcome: run.Parked, WakeAt: time.Now().Add(soon)})
			if err != nil {
				t.Fatal(err)
			}
			wake, err := time.Parse(time.RFC3339, res.(*FinishResult).WakeAt)
			if got := time.Until(wake); err != nil || got < max(calmWait, soon) || got > max(calmWait, soon)+time.Second {
				t.Errorf("a step that may go on in %s is asked for in %s, %v", soon, got, err)
			}
		}
	})
}
