package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

func TestX1StartingTwiceIsTheSameRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		first := w.start("r", callA, rows(3)...)
		w.parked(first)
		second := w.start("r", callA, rows(3)...)
		if second.Run.ID != first.Run.ID || second.Run.Counts.Completed != 2 || !second.Run.StartedAt.Equal(first.Run.StartedAt) {
			t.Errorf("the second start gave %+v", second.Run)
		}
		if _, err := w.tryStart("r", twoCalls, rows(3)...); !errors.Is(err, run.ErrOtherRun) {
			t.Errorf("another map under the same id: %v", err)
		}
		w.finish(second)
		if n := len(w.provider.log()); n != 4 {
			t.Errorf("%d calls, want 3 and the one that was held", n)
		}
	})
}

func TestX1StartingTwiceAtTheSameMoment(t *testing.T) {
	for _, delay := range seconds(0, 0.01) {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			f.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: delay, On: func(op tabletest.Op, _ table.Key) bool { return true }})
			jobs, errs := make([]*run.Job, 4), make([]error, 4)
			var wg sync.WaitGroup
			for i := range jobs {
				wg.Go(func() { jobs[i], errs[i] = w.tryStart("r", callA, rows(1500)...) })
			}
			wg.Wait()
			for i, err := range errs {
				if err != nil || jobs[i].Run.Sealed.Digest != jobs[0].Run.Sealed.Digest {
					t.Fatalf("start %d: %v", i, err)
				}
			}
			if got := w.finish(jobs[3]); strings.Count(got, "\n") != 1501 {
				t.Errorf("%d lines", strings.Count(got, "\n"))
			}
			if n := len(items(t, tbl, "runs", "")); n != 1 {
				t.Errorf("%d runs are listed", n)
			}
		})
	}
}

func TestX2SecondSliceLeavesWithoutEffect(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = slowEcho(2 * time.Second)
		job := w.start("r", callA, rows(20)...)
		time.AfterFunc(time.Second, func() {
			before := f.Writes()
			if res := w.slice(w.reload(job)); res.Outcome != run.Busy || res.WakeAt.Before(time.Now()) {
				t.Errorf("the second slice: %+v, want busy", res)
			}
			if f.Writes() != before {
				t.Error("the second slice wrote")
			}
		})
		if res := w.slice(job); res.Outcome != run.Done {
			t.Errorf("the first slice ended %s", res.Outcome)
		}
		if n := len(w.provider.log()); n != 20 {
			t.Errorf("%d calls for 20 rows", n)
		}
	})
}

// A slice whose shard is another's comes again soon, and more and more rarely: long before the lease of a dead one would end,
// and often enough not to be late when a living one has ended.
func TestX2ASecondSliceComesBackSoon(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = slowEcho(2 * time.Second)
		job, began := w.start("r", callA, rows(20)...), time.Now()
		var mu sync.Mutex
		var looks []time.Duration
		go func() {
			for {
				time.Sleep(time.Second)
				res := w.slice(w.reload(job))
				mu.Lock()
				looks = append(looks, time.Since(began).Round(100*time.Millisecond))
				mu.Unlock()
				if res.Outcome != run.Busy {
					return
				}
				time.Sleep(time.Until(res.WakeAt) - time.Second)
			}
		}()
		w.slice(job) // 40 s
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		// A second after the first look; from then on after half of what has passed.
		if want := "[1s 2s 3s 4.5s 6.8s 10.1s 15.2s 22.8s 34.2s 51.3s]"; fmt.Sprint(looks) != want {
			t.Errorf("looked at %v, want %s", looks, want)
		}
	})
}

func TestX2TwoSlicesAtTheSameMoment(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = slowEcho(time.Second)
		job := w.start("r", callA, rows(20)...)
		f.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: 5 * time.Millisecond, On: func(tabletest.Op, table.Key) bool { return true }})
		outcomes := make(chan run.Outcome, 2)
		for range 2 {
			ports, own := w.ports(), w.reload(job)
			go func() {
				res, err := own.Slice(t.Context(), ports, 0, w.settings)
				if err != nil {
					t.Error(err)
				}
				outcomes <- res.Outcome
			}()
		}
		if a, b := <-outcomes, <-outcomes; a != run.Busy || b != run.Done {
			t.Errorf("the slices ended %s and %s, want busy and done", a, b)
		}
		if n := len(w.provider.log()); n != 20 {
			t.Errorf("%d calls for 20 rows", n)
		}
	})
}

// frozen is a store as a process sees it that is not run for ten minutes while it writes its third checkpoint.
type frozen struct {
	table.Table
	after int
}

func (f *frozen) Put(ctx context.Context, item table.Item, cond table.If) error {
	if isCheckpoint(item.Key) {
		if f.after--; f.after < 0 {
			time.Sleep(10 * time.Minute)
		}
	}
	return f.Table.Put(ctx, item, cond)
}

// A slice whose lease could not be renewed has an heir. It finds out before its next dispatch, without being told.
func TestX2ZombieStopsBeforeItsNextDispatch(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 2
		w.provider.answer = slowEcho(7 * time.Second)
		job := w.start("r", callA, rows(40)...)
		w.st.Table = &frozen{Table: tbl, after: 2}
		heir := newWorld(t, tbl) // sees the same store without the delay
		heir.st.Blobs, heir.provider = w.st.Blobs, w.provider
		heir.slices = 100
		var taken time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				time.Sleep(time.Second)
				cp := heir.checkpoint(job)
				if !time.Now().Before(cp.LeaseUntil) {
					break
				}
			}
			taken = time.Since(w.provider.started)
			if res := heir.slice(heir.reload(job)); res.Outcome != run.Done {
				t.Errorf("the heir ended %s", res.Outcome)
			}
		})
		if err := w.failing(t.Context(), job); !errors.Is(err, run.ErrLost) {
			t.Errorf("the zombie ended with %v, want ErrLost", err)
		}
		wg.Wait()
		seen := map[string]int{}
		for _, a := range w.provider.log() {
			if seen[a.input]++; seen[a.input] > 1 && a.at < taken {
				t.Errorf("%s was asked twice before there was an heir", a.input)
			}
		}
		if n := len(w.provider.log()); n > 40+2 { // only what was in flight at the end of the lease is asked again
			t.Errorf("%d calls for 40 rows: the zombie went on", n)
		}
		if got := heir.export(heir.reload(job)); strings.Count(got, "\n") != 41 {
			t.Errorf("%d lines", strings.Count(got, "\n"))
		}
	})
}

func TestX5CountsSheetAndExportAgree(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case strings.Contains(string(a.Input), "7"):
				return call.Answer{Outcome: call.Failed, Dispatched: true, Error: &call.Error{Code: "HTTP_400", Message: "no"}}
			case strings.Contains(string(a.Input), "3") && nth == 0:
				time.Sleep(scriptedTakes)
				return heldFor(time.Minute)
			}
			return echo(a, nth)
		}
		lines := append(rows(1200), "r5", "r6") // two duplicates
		job := w.start("r", "version: 1\nname: k\nkey: x\n"+callA[strings.Index(callA, "columns"):], lines...)
		got := w.finish(job)
		failed := strings.Count(got, ",failed,")
		sealed, counts := job.Run.Sealed, job.Run.Counts
		if sealed.Total != 1202 || sealed.Duplicates != 2 || counts.Failed != int64(failed) || counts.Completed+counts.Failed != 1200 {
			t.Errorf("sealed %+v, counts %+v, %d failed in the export", sealed, counts, failed)
		}
		statuses := w.statuses(job, w.st)
		if count(statuses, run.StatusFailed) != failed || count(statuses, run.StatusCompleted) != 1200-failed {
			t.Errorf("the sheet has %d failed rows, the export %d", count(statuses, run.StatusFailed), failed)
		}
		want := 0 // numbers below 1200 with a 7 in them
		for i := range 1200 {
			if strings.Contains(fmt.Sprint(i), "7") {
				want++
			}
		}
		if failed != want || strings.Count(got, "\n") != 1201 {
			t.Errorf("%d rows failed of %d lines, want %d", failed, strings.Count(got, "\n"), want)
		}
	})
}

func TestX5WrongCountsMakeFinishFail(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", callA, rows(10)...)
		if res := w.slice(job); res.Outcome != run.Done {
			t.Fatal(res.Outcome)
		}
		cp := w.checkpoint(job)
		cp.Counts.Completed--
		if err := cp.Save(t.Context(), w.st, "r", 0); err != nil {
			t.Fatal(err)
		}
		if text, err := w.tryExport(job); !errors.Is(err, run.ErrIncomplete) || text != "" {
			t.Errorf("exported %d bytes, error %v", len(text), err)
		}
	})
}

func TestFinishBeforeTheEndFails(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		job := w.start("r", callA, rows(3)...)
		w.parked(job)
		if _, err := w.tryExport(job); !errors.Is(err, run.ErrIncomplete) {
			t.Errorf("a parked run was finished: %v", err)
		}
		w.finish(job)
	})
}

// The invocation ends after 40 s; a call may take 20 s. The slice stops admitting in time, ends before its deadline, and
// the next ones go on.
func TestDeadlineStopsAdmittingAndReturnsMore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 4
		w.provider.answer = slowEcho(3 * time.Second)
		job := w.start("r", twoCalls, rows(50)...)
		for slice := 0; ; slice++ {
			deadline := time.Now().Add(40 * time.Second)
			w.settings.Deadline = deadline
			res := w.slice(job)
			if time.Until(deadline) < run.DrainMargin {
				t.Errorf("the slice ended %v before its deadline", time.Until(deadline))
			}
			if res.Outcome == run.Done {
				break
			}
			if res.Outcome != run.More || slice > 20 {
				t.Fatalf("slice %d ended %s, want more", slice, res.Outcome)
			}
		}
		w.export(job)
		if n := len(w.provider.log()); n != 100 {
			t.Errorf("%d calls, want 2 a row", n)
		}
	})
}

// All rows that are left wait for their turn when the time is over. They are not held: the next slice goes on at once.
func TestDeadlineSendsBackWhoWaitsForATurn(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			answer := echo(a, nth)
			if w.provider.calls("a.get", "")%5 == 0 { // five at a time
				answer.NextFree = time.Now().Add(4 * time.Second)
			}
			if w.provider.calls("a.get", "") > 5 && nth == 0 && time.Since(w.provider.started) < 4*time.Second {
				return call.Answer{Outcome: call.Refused, NextFree: time.Now().Add(4 * time.Second)}
			}
			return answer
		}
		job := w.start("r", callA, rows(20)...)
		w.settings.Deadline = time.Now().Add(27 * time.Second) // 2 s, besides the longest call and the margin
		if res := w.slice(job); res.Outcome != run.More || time.Since(w.provider.started) > 3*time.Second {
			t.Errorf("the slice ended %+v after %v, want more", res, time.Since(w.provider.started))
		}
		if got := w.statuses(job, w.st); count(got, run.StatusHeld) != 0 || count(got, run.StatusInterrupted) == 0 {
			t.Errorf("the rows are %v", got)
		}
		w.settings.Deadline = time.Time{}
		time.Sleep(4 * time.Second)
		w.finish(w.reload(job))
	})
}

func TestStopDrainsAndResumeFinishes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.settings.Concurrency = 4
		w.provider.answer = slowEcho(time.Second)
		job := w.start("r", twoCalls, rows(50)...)
		stop := make(chan struct{})
		w.settings.Stop = stop
		time.AfterFunc(3500*time.Millisecond, func() { close(stop) })
		begun := time.Now()
		res := w.slice(job)
		if took := time.Since(begun); res.Outcome == run.Done || took > 4100*time.Millisecond {
			t.Errorf("stopped at 3.5 s, ended %s at %v", res.Outcome, took)
		}
		if n := f.Count(); n > 500 {
			t.Errorf("%d operations: the slice did not sleep while it drained", n)
		}
		w.settings.Stop = nil
		w.finish(w.reload(job))
		if n := len(w.provider.log()); n != 100 {
			t.Errorf("%d calls, want 2 a row: a stop must lose nothing", n)
		}
	})
}

func TestFailFastEndsTheRunAtItsFirstFailedRow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 2
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Second)
			if strings.Contains(string(a.Input), `"r5"`) {
				return call.Answer{Outcome: call.Failed, Dispatched: true, Error: &call.Error{Code: "HTTP_400", Message: "no"}}
			}
			return echo(a, nth)
		}
		job := w.start("r", strings.Replace(callA, "columns:", "onRowError: fail\ncolumns:", 1), rows(50)...)
		err := w.failing(t.Context(), job)
		var row *run.RowError
		if !errors.As(err, &row) || row.Index != 5 || !run.Permanent(err) {
			t.Errorf("got %v, want a permanent RowError of row 5", err)
		}
		if n := len(w.provider.log()); n > 8 {
			t.Errorf("%d calls, the sixth failed", n)
		}
		for _, p := range w.checkpoint(job).Pending {
			if p.Row == 5 {
				t.Error("the failed row counts as pending")
			}
		}
		if cp := w.checkpoint(job); cp.Counts.Failed != 1 || cp.Counts.Completed < 4 {
			t.Errorf("counts %+v", cp.Counts)
		}
	})
}

func TestCancellationKeepsFinishedWork(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 5
		w.provider.answer = echo
		slow := interrupted{w.provider} // 10 s a call
		job := w.start("r", callA, rows(20)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(25*time.Second, cancel)
		ports, begun := w.ports(), time.Now()
		ports.Gateway = slow
		_, err := job.Slice(ctx, ports, 0, w.settings)
		if took := time.Since(begun); !errors.Is(err, context.Canceled) || took != 25*time.Second {
			t.Errorf("ended after %v with %v", took, err)
		}
		if n := count(w.statuses(job, w.st), run.StatusCompleted); n != 10 {
			t.Errorf("%d rows are saved, want the 10 that had completed", n)
		}
		w.finish(w.reload(job)) // at once: the lease was given back
		calls := map[string]int{}
		for _, a := range w.provider.log() {
			calls[a.input]++
		}
		for i := range 10 {
			if n := calls[`{"x":"r`+itoa(i)+`"}`]; n != 1 {
				t.Errorf("r%d had completed and was called for %d times", i, n)
			}
		}
	})
}

func TestHoldOfADayTakesNoTimeOfItsOwn(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(24*time.Hour))
		begun := time.Now()
		w.finish(w.start("r", callA, rows(3)...))
		if took := time.Since(begun); took < 24*time.Hour || took > 24*time.Hour+time.Second {
			t.Errorf("took %v", took)
		}
		if n := f.Count(); len(w.parks) != 1 || n > 200 {
			t.Errorf("%d parks, %d operations of the store", len(w.parks), n)
		}
	})
}

// One of two providers is out for three minutes. The rows that do not need it are done at once, the others right after.
func TestOutageOfOneProviderDelaysOnlyItsRows(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.settings.Concurrency = concurrency
			begun := time.Now()
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				if left := 3*time.Minute - time.Since(begun); a.Tool == "a.get" && left > 0 {
					return heldFor(left)
				}
				return echo(a, nth)
			}
			var lines []string
			for i := range 400 {
				lines = append(lines, "r"+itoa(i)+","+string("ab"[i%2]))
			}
			job := w.start("r", byProvider, append([]string{"x,p"}, lines...)...)
			if wait := w.parked(job); time.Since(begun) > 100*time.Millisecond || wait > 3*time.Minute {
				t.Errorf("parked after %v for %v", time.Since(begun), wait)
			}
			if n := w.checkpoint(job).Counts.Completed; n != 200 {
				t.Errorf("%d rows done during the outage, want 200", n)
			}
			if n := w.provider.calls("a.get", ""); n > concurrency {
				t.Errorf("the provider that is out was asked %d times", n)
			}
			w.finish(job)
			if took := time.Since(begun); took > 3*time.Minute+time.Second {
				t.Errorf("took %v, want 3 minutes", took)
			}
		})
	}
}

// The results of the rows around a held one outgrow the journal, which is cut: the page of the held row is read back
// when the run goes on, and nothing on it is computed, paid for or counted again.
func TestH6HeldRowOnAPageThatTheJournalNoLongerHolds(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		big := strings.Repeat("0123456789abcdef", 400)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "b.get" && strings.Contains(string(a.Input), `"r3"`) && nth == 0 {
				time.Sleep(time.Second)
				return heldFor(time.Hour)
			}
			if a.Tool == "a.get" {
				return ok(map[string]any{"x": strings.Trim(string(a.Input), `{"x:}`), "big": big})
			}
			return echo(a, nth)
		}
		const wide = `
version: 1
name: wide
columns:
  - {name: all, call: a.get, with: {x: "${row.x}"}}
  - {name: two, call: b.get, with: {x: "${row.x}"}, result: "${result.x}"}
output: {x: "${row.x}", two: "${cells.two}", big: "${size(cells.all.big)}"}
`
		job := w.start("r", wide, rows(1800)...)
		time.Sleep(w.parked(job))
		if left := items(t, tbl, "run/r/shard/0000", "j/"); len(left) > 2 {
			t.Logf("%d groups are left of the journal", len(left))
		}
		before := len(w.provider.log())
		got := w.finish(w.reload(job))
		if n := len(w.provider.log()) - before; n != 1 {
			t.Errorf("%d calls after the park, want the one that was held", n)
		}
		if strings.Count(got, ",6400\n") != 1800 {
			t.Errorf("%d whole rows of 1800", strings.Count(got, ",6400\n"))
		}
		if counts := w.reload(job).Run.Counts; counts != (sheet.Counts{Completed: 1800}) {
			t.Errorf("counts %+v", counts)
		}
	})
}
