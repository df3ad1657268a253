package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// slowly is a gateway that takes its time, and notices when it is interrupted: what it had sent by then may have arrived.
type slowly struct {
	*provider
	takes time.Duration
}

func (g slowly) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	return g.provider.Execute(ctx, batch, func(i int, a call.Answer) {
		if a.Outcome == call.Result {
			select {
			case <-time.After(g.takes):
			case <-ctx.Done():
				a = call.Answer{Outcome: call.Failed, Dispatched: true, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "interrupted"}}
			}
		}
		deliver(i, a)
	})
}

func (w *world) settle(id string) *sheet.Run {
	w.t.Helper()
	r, err := run.Settle(w.t.Context(), w.ports(), w.settings, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) goOn(id string) {
	w.t.Helper()
	if _, err := run.Continue(w.t.Context(), w.st, id, sheet.Budget{}); err != nil {
		w.t.Fatal(err)
	}
}

// A run is cancelled while calls of an hour are under way: they are interrupted within two seconds. What is known of them
// is saved, what had ended is kept, and the record counts it.
func TestX4R10CancelInterruptsAtOnceAndKeepsWhatIsDone(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r0") {
				return call.Answer{Outcome: call.Missing, Dispatched: true}
			}
			return echo(a, nth)
		}
		w.settings.Concurrency = 3
		job := w.start("r", unfenced, rows(6)...)
		time.AfterFunc(10*time.Second, func() {
			if err := run.Cancel(context.Background(), w.st, "r"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		ports := w.ports()
		ports.Gateway = slowly{w.provider, time.Hour}
		res, err := job.Slice(t.Context(), ports, 0, w.settings)
		if took := time.Since(began) - 10*time.Second; err != nil || res.Outcome != run.Cancelled || took > 2*time.Second {
			t.Fatalf("%+v, %v, %v after the cancellation", res, err, took)
		}
		if cp := w.checkpoint(job); cp.Owner != "" || !cp.LeaseUntil.IsZero() {
			t.Errorf("the shard is still %q's until %v", cp.Owner, cp.LeaseUntil)
		}
		rec := w.settle("r")
		if rec.Status != sheet.Cancelled || rec.FinishedAt.IsZero() || rec.Counts.Ended() == 0 || rec.Counts.Ended() == 6 {
			t.Errorf("%s, %+v", rec.Status, rec.Counts)
		}
		calls := len(w.provider.log())
		w.goOn("r")
		w.finish(w.reload(job))
		for request, times := range w.provider.seen {
			if times > 1 { // T2: it may have arrived, and is not made again
				t.Errorf("%s was made %d times", request, times)
			}
		}
		if made := len(w.provider.log()); calls != 4 || made != 6 {
			t.Errorf("%d calls before the cancellation, %d in all", calls, made)
		}
		if got := w.reload(job).Run.Counts; got.Failed != 3+1 { // interrupted ones; and a null cannot be dotted
			t.Errorf("%+v", got)
		}
	})
}

// A parked run has no process. Cancelling makes its record true, and the slice that the alarm clock starts does nothing.
func TestX4CancelOfAParkedRunNeedsNoSlice(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		job := w.start("r", callA, rows(3)...)
		wait := w.parked(job)
		for range 2 { // again is harmless
			if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
				t.Fatal(err)
			}
			if rec := w.settle("r"); rec.Status != sheet.Cancelled || rec.Counts != (sheet.Counts{Completed: 2}) {
				t.Errorf("%s, %+v", rec.Status, rec.Counts)
			}
		}
		time.Sleep(wait)
		asked := len(w.provider.log())
		if res := w.slice(job); res.Outcome != run.Cancelled || len(w.provider.log()) != asked {
			t.Errorf("%+v, %d calls after the cancellation", res, len(w.provider.log())-asked)
		}
	})
}

// What has ended cannot be cancelled, and says how it ended.
func TestX4CancelOfAnEndedRunIsAnError(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.finish(w.start("r", callA, rows(1)...))
		for _, err := range []error{run.Cancel(t.Context(), w.st, "r"), run.Pause(t.Context(), w.st, "r", "")} {
			if !errors.Is(err, run.ErrEnded) || !strings.Contains(err.Error(), "completed") {
				t.Error(err)
			}
		}
		if err := run.Cancel(t.Context(), w.st, "none"); !errors.Is(err, sheet.ErrNoRun) {
			t.Error(err)
		}
	})
}

// A pause lets calls come to their end; then nothing runs until the run is continued, and nothing is asked twice.
func TestX4PauseKeepsEverythingUntilContinued(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.settings.Concurrency = 2
		job := w.start("r", twoCalls, rows(7)...)
		time.AfterFunc(time.Second/2, func() {
			if err := run.Pause(context.Background(), w.st, "r", "lunch"); err != nil {
				t.Error(err)
			}
		})
		ports := w.ports()
		ports.Gateway = slowly{w.provider, 10 * time.Second}
		for range 2 { // the second slice finds the pause
			if res, err := job.Slice(t.Context(), ports, 0, w.settings); err != nil || res.Outcome != run.Paused {
				t.Fatal(res, err)
			}
		}
		if n := len(w.provider.log()); n != 2 {
			t.Errorf("%d calls, want the two that were under way", n)
		}
		rec := w.settle("r")
		if rec.Status != sheet.Paused || rec.Pause == nil || rec.Pause.Reason != "lunch" || rec.Pause.At.IsZero() {
			t.Fatalf("%s, %+v", rec.Status, rec.Pause)
		}
		time.Sleep(24 * time.Hour)
		w.goOn("r")
		if got := w.finish(w.reload(job)); strings.Count(got, "!") != 7 {
			t.Error(got)
		}
		if n := len(w.provider.log()); n != 14 {
			t.Errorf("%d calls in all, want 14", n)
		}
		if rec := w.reload(job).Run; rec.Pause != nil || rec.Status != sheet.Completed {
			t.Errorf("%s, %+v", rec.Status, rec.Pause)
		}
	})
}

// The export of a cancelled run holds what is finished, and says of every row how it stands; a row that had not ended is
// never shown as completed.
func TestX4X5ExportOfACancelledRunSaysHowEveryRowStands(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case a.Tool == "b.get" && strings.Contains(string(a.Input), "hold"): // its first cell is there
				time.Sleep(50 * time.Millisecond) // the others are through
				return heldFor(time.Hour)
			case strings.Contains(string(a.Input), "bad"):
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
			}
			return echo(a, nth)
		}
		job := w.start("r", twoCalls, "x", "ada", "hold", "bad")
		w.parked(job)
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		w.settle("r")
		job = w.reload(job)
		var b strings.Builder
		if err := job.Export(t.Context(), w.ports(), &b, "csv"); err != nil {
			t.Fatal(err)
		}
		want := "x,up,one,two,_status,_error\nada,ADA,ada,ada!,completed,\nhold,,,,cancelled,\nbad,,,,failed,one: HTTP_422: no\n"
		if b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", &b, want)
		}
		job.Run.Counts.Completed++
		if err := job.Export(t.Context(), w.ports(), &b, "csv"); !errors.Is(err, run.ErrIncomplete) {
			t.Errorf("counts that are wrong: %v", err)
		}
	})
}

// A slice died, and somebody cancels before anybody takes over: what its journal holds is counted and kept, also where
// journals expire.
func TestX4CancelAfterACrashKeepsWhatTheJournalHolds(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.settings.Keep, w.settings.Concurrency = 48*time.Hour, 1
		job := w.start("r", twoCalls, rows(5)...)
		f.OnOp(func(e tabletest.Event) {
			if e.Op == tabletest.OpPut && isJournal(e.Keys[0]) && e.Keys[0].Sort > "j/00000001/0000000004" {
				f.CrashAt(1, tabletest.NotDone)
			}
		})
		w.failing(t.Context(), job)
		f.OnOp(nil)
		f.Heal()
		known := w.reload(job).Run.Counts
		if known.Completed == 0 {
			t.Fatal("nothing had ended")
		}
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		if rec := w.settle("r"); rec.Status == sheet.Cancelled {
			t.Error("the dead slice's lease was not over, and it was taken for dead")
		}
		time.Sleep(run.Lease)
		if rec := w.settle("r"); rec.Status != sheet.Cancelled || rec.Counts != known {
			t.Errorf("%s, %+v, want %+v", rec.Status, rec.Counts, known)
		}
		time.Sleep(1000 * time.Hour) // the journal has gone
		if got := count(w.statuses(w.reload(job), w.st), run.StatusCompleted); int64(got) != known.Completed {
			t.Errorf("%d rows are there, %d were counted", got, known.Completed)
		}
		w.goOn("r")
		if got := w.finish(w.reload(job)); strings.Count(got, "!") != 5 {
			t.Error(got)
		}
	})
}
