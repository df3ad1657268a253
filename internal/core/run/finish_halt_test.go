package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// A run that is cancelled while its last steps wait has its table, makes no further step, and goes on with what is left if
// somebody wants it to.
func TestFinishIsCancelledAndContinued(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "held", holds(time.Hour))
		job := w.rowsDone(toldAll, rows(2)...)
		if res, err := job.Finish(t.Context(), w.ports(), w.settings, nil); err != nil || res.Outcome != run.Parked {
			t.Fatal(res, err)
		}
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		rec, err := run.Settle(t.Context(), w.ports(), w.settings, "r")
		if err != nil || rec.Status != sheet.Cancelled || !rec.Whole() || rec.Stats.Dispatched != 4 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if res, err := w.reload(job).Finish(t.Context(), w.ports(), w.settings, nil); err != nil || res.Outcome != run.Cancelled {
			t.Errorf("a step of a cancelled run: %v, %v", res, err)
		}
		if _, err := run.Continue(t.Context(), w.st, "r", sheet.Budget{}); err != nil {
			t.Fatal(err)
		}
		w.end("r", nil)
		if a, b := w.provider.calls("a.post", ""), w.provider.calls("b.get", ""); a != 2 || b != 2 {
			t.Errorf("made %d and %d times", a, b)
		}
	})
}

// A pause is heard while a step is under way: it comes to its end, and no other is begun.
func TestFinishIsPaused(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "held") {
				time.Sleep(10 * time.Second)
			}
			return echo(a, nth)
		}
		job := w.rowsDone(toldAll, rows(2)...)
		time.AfterFunc(3*time.Second, func() {
			if err := run.Pause(t.Context(), w.st, "r", "lunch"); err != nil {
				t.Error(err)
			}
		})
		if res, err := job.Finish(t.Context(), w.ports(), w.settings, nil); err != nil || res.Outcome != run.Paused {
			t.Fatal(res, err)
		}
		rec, err := run.Settle(t.Context(), w.ports(), w.settings, "r")
		if err != nil || rec.Status != sheet.Paused || rec.Pause.Reason != "lunch" || w.provider.calls("a.post", "") != 1 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if _, err := run.Continue(t.Context(), w.st, "r", sheet.Budget{}); err != nil {
			t.Fatal(err)
		}
		w.end("r", nil)
		if a, b := w.provider.calls("a.post", ""), w.provider.calls("b.get", ""); a != 2 || b != 1 {
			t.Errorf("made %d and %d times", a, b)
		}
	})
}

// A provider that says nothing but "wait" is given up at the end of a run as it is in a row: the run has completed, and says so.
func TestR5FinishGivesUpAProviderThatOnlyWaits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "b.get" {
				return heldFor(10 * time.Minute)
			}
			return echo(a, nth)
		}
		job, err := w.startOf("r", told, impatient, rows(1)...)
		if err != nil {
			t.Fatal(err)
		}
		w.slice(job)
		began := time.Now()
		w.end("r", nil)
		rec := w.record("r")
		if took := time.Since(began); rec.Status != sheet.Completed || took < 20*time.Minute || took > 31*time.Minute || len(rec.Warnings()) != 1 ||
			!strings.Contains(rec.Warnings()[0], "finish step 1 (b.get): PROVIDER_EXHAUSTED") || w.provider.calls("a.post", "") != 1 {
			t.Errorf("after %v: %s, %v", took, rec.Status, rec.Warnings())
		}
	})
}
