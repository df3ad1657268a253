package run_test

import (
	"context"
	"errors"
	"slices"
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

const fallbacks = `
version: 1
name: fall
columns:
  - name: phone
    waterfall:
      - {call: a.get, with: {x: "${row.x}"}, result: "${result.x + '-a'}"}
      - {call: b.get, with: {x: "${row.x}"}, result: "${result.x + '-b'}"}
    otherwise: none
    onError: {value: broken}
`

// The first provider of a waterfall says "wait": the second is not asked, and the row waits for the first.
func TestH1HoldInWaterfallDoesNotFallThrough(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		job := w.start("r", fallbacks, rows(3)...)
		w.parked(job)
		if n := w.provider.calls("b.get", ""); n != 0 {
			t.Errorf("the next provider of the waterfall was asked %d times", n)
		}
		if got, want := w.finish(job), "x,phone\nr0,r0-a\nr1,r1-a\nr2,r2-a\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A hold is no error: it leaves no error cell, no failed row, and a column's onError does not stand in for it.
func TestH1R3HoldIsNoErrorForOnErrorAndLaterColumns(t *testing.T) {
	const guarded = `
version: 1
name: guarded
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}", onError: {value: fallback}}
  - {name: two, call: b.get, with: {x: "${row.x}"}, result: "${result.x}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r0", holds(time.Hour))
		job := w.start("r", guarded, rows(1)...)
		w.parked(job)
		if got := w.statuses(job, w.st); !slices.Equal(got, []string{run.StatusHeld}) {
			t.Errorf("the row is %v, want held", got)
		}
		if n := w.provider.calls("b.get", ""); n != 0 {
			t.Errorf("a later column of the held row made %d calls", n)
		}
		if got, want := w.finish(job), "x,one,two\nr0,r0,r0\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if cp := w.checkpoint(job); cp.Counts.Failed != 0 {
			t.Errorf("%d rows failed", cp.Counts.Failed)
		}
	})
}

func TestH2ProvidersRecoverSeparately(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			wait := map[string]time.Duration{"a.get": time.Hour, "b.get": 2 * time.Hour}[a.Tool]
			if nth == 0 {
				held := heldFor(wait)
				held.Scope = a.Tool[:1]
				return held
			}
			return echo(a, nth)
		}
		job := w.start("r", byProvider, "x,p", "r0,a", "r1,b")
		if wait := w.parked(job); wait != time.Hour {
			t.Errorf("the first wake is in %v, want 1h", wait)
		}
		for _, p := range w.checkpoint(job).Pending {
			want := map[int64]struct {
				wait  time.Duration
				scope string
			}{0: {time.Hour, "a"}, 1: {2 * time.Hour, "b"}}[p.Row]
			if time.Until(p.Until) != want.wait || p.Scope != want.scope {
				t.Errorf("row %d is held by %s for %v, want %+v", p.Row, p.Scope, time.Until(p.Until), want)
			}
		}
		w.finish(job)
		if got := w.provider.times("a.get", ""); !near(got, seconds(0, 3600)) {
			t.Errorf("a was asked at %v", got)
		}
		if got := w.provider.times("b.get", ""); !near(got, seconds(0, 7200)) {
			t.Errorf("b was asked at %v", got)
		}
	})
}

// Writes of results are slow. At the moment at which the store says "parked" everything else is in it already.
func TestH3NobodySeesParkedBeforeTheRestIsDurable(t *testing.T) {
	const cached = `
version: 1
name: cached
columns:
  - {name: one, call: a.cached, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: two, call: b.get, with: {x: "${cells.one}"}, result: "${result.x}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = scripted("b.get", `"r2"`, func() call.Answer {
			time.Sleep(20 * time.Second) // all others are through
			return heldFor(time.Hour)
		})
		job := w.start("r", cached, rows(1200)...) // one page completes, the other has the held row
		late := func(op tabletest.Op, k table.Key) bool {
			return op.IsWrite() && (isJournal(k) || isPage(k) || isReceipt(k))
		}
		f.Inject(tabletest.Fault{Kind: tabletest.Slow, On: late, Delay: 700 * time.Millisecond})
		w.settings.Concurrency = 600
		var mu sync.Mutex
		parked, seen := false, 0
		f.OnOp(func(e tabletest.Event) {
			mu.Lock()
			defer mu.Unlock()
			if parked && late(e.Op, e.Keys[0]) && e.Op != tabletest.OpDelete {
				t.Errorf("%s of %v after the shard was parked", e.Op, e.Keys)
			}
			if !isCheckpoint(e.Keys[0]) || e.Op != tabletest.OpPut {
				return
			}
			st := behind(w, tbl)
			cp, err := sheet.LoadCheckpoint(context.Background(), st, "r", 0)
			if err != nil || cp.Status != sheet.ShardParked {
				return
			}
			parked = true
			seen = count(w.statuses(job, st), run.StatusCompleted)
			for v := range job.Rows(context.Background(), run.Ports{Store: st}) {
				if v.Status == run.StatusHeld && (v.Row != 3 || v.Cells["one"] != "r2") {
					t.Errorf("held row %d has cells %v", v.Row, v.Cells)
				}
			}
		})
		w.parked(job)
		if !parked || seen != 1199 {
			t.Errorf("parked %v, with %d rows completed in the store, want 1199", parked, seen)
		}
	})
}

func TestH4WakesAtTheEarliestDeadline(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		wait := map[string]time.Duration{"r0": 3 * time.Hour, "r1": time.Hour, "r2": 2 * time.Hour}
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(scriptedTakes)
			for x, d := range wait {
				if nth == 0 && strings.Contains(string(a.Input), x) {
					return heldFor(d)
				}
			}
			return echo(a, nth)
		}
		job := w.start("r", callA, rows(3)...)
		if got := w.parked(job); got != time.Hour {
			t.Errorf("wakes in %v, want 1h", got)
		}
	})
}

func TestH5ParkedShardRemembersIndexCellsAndInput(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("b.get", "r2", holds(time.Hour))
		// r1 comes twice: the held row is the second that is kept and the third of the source.
		job := w.start("r", "version: 1\nname: k\nkey: x\n"+twoCalls[strings.Index(twoCalls, "columns"):], "x", "r1", "r1", "r2", "r3")
		w.parked(job)
		cp := w.checkpoint(job)
		if len(cp.Pending) != 1 || cp.Pending[0].Row != 1 || cp.Pending[0].Index != 2 || len(cp.Pending[0].Input) != 8 {
			t.Fatalf("pending %+v, want row 1 with source index 2 and its input's digest", cp.Pending)
		}
		for v, err := range job.Rows(t.Context(), run.Ports{Store: w.st}) {
			if err != nil {
				t.Fatal(err)
			}
			if held := v.Status == run.StatusHeld; held != (v.Row == 3) || held && (v.Cells["one"] != "r2") {
				t.Errorf("row %d is %s with cells %v", v.Row, v.Status, v.Cells)
			}
		}
	})
}

func TestH5ChangedInputOfAHeldRowIsRefused(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		job := w.start("r", callA, rows(3)...)
		time.Sleep(w.parked(job))
		cp := w.checkpoint(job)
		cp.Pending[0].Input = "0000000000000000"
		if err := cp.Save(t.Context(), w.st, "r", 0); err != nil {
			t.Fatal(err)
		}
		before := len(w.provider.log())
		err := w.failing(t.Context(), w.reload(job))
		var changed *run.ChangedError
		if !errors.As(err, &changed) || changed.Row != 1 || !run.Permanent(err) {
			t.Errorf("got %v, want a permanent ChangedError of row 1", err)
		}
		if n := len(w.provider.log()) - before; n != 0 {
			t.Errorf("%d calls were made for a row whose input has changed", n)
		}
	})
}

// Forty rows, of which five meet a hold while 20 were not admitted yet: a fresh process works on those 25 alone.
func TestH6ResumeRunsOnlyWhatIsLeft(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(10 * time.Millisecond)
			if strings.Contains(string(a.Input), "5\"") && nth == 0 { // r5, r15, r25, r35
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		w.settings.Concurrency = 2
		var progress []int64
		f.OnOp(func(e tabletest.Event) {
			if e.Op == tabletest.OpPut && isCheckpoint(e.Keys[0]) {
				if cp, err := sheet.LoadCheckpoint(context.Background(), behind(w, tbl), "r", 0); err == nil {
					progress = append(progress, cp.Counts.Ended())
				}
			}
		})
		job := w.start("r", byProvider, func() []string {
			lines := []string{"x,p"}
			for i := range 40 {
				p := "b"
				if i%10 == 5 {
					p = "a"
				}
				lines = append(lines, "r"+itoa(i)+","+p)
			}
			return lines
		}()...)
		started := job.Run.StartedAt
		stop := make(chan struct{})
		time.AfterFunc(95*time.Millisecond, func() { close(stop) })
		w.settings.Stop = stop
		if res := w.slice(job); res.Outcome == run.Done {
			t.Fatal("stopped at half, and done")
		}
		asked, done := map[string]bool{}, w.checkpoint(job).Counts.Completed
		for _, a := range w.provider.log() {
			asked[a.input] = true
		}
		if done < 5 || done > 30 {
			t.Fatalf("%d rows completed before the stop", done)
		}
		w.settings.Stop = nil
		before := len(w.provider.log())
		fresh := w.reload(job)
		if fresh.Run.Counts.Completed != done || !fresh.Run.StartedAt.Equal(started) {
			t.Errorf("resumed with %+v since %v, want %d since %v", fresh.Run.Counts, fresh.Run.StartedAt, done, started)
		}
		w.finish(fresh)
		for _, a := range w.provider.log()[before:] {
			if asked[a.input] && !strings.Contains(a.input, "5\"") {
				t.Errorf("%s had completed and was called for again", a.input)
			}
		}
		if !slices.IsSorted(progress) || progress[len(progress)-1] != 40 {
			t.Errorf("progress went %v", progress)
		}
	})
}

func TestH7SourceThatChangesWhileParkedChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "bob", holds(time.Hour))
		job := w.start("r", callA, "x", "ada", "bob")
		w.parked(job)
		if _, err := w.tryStart("r", callA, "x", "ada", "eve"); !errors.Is(err, run.ErrOtherRun) {
			t.Errorf("another source under the same id: %v, want ErrOtherRun", err)
		}
		if got, want := w.finish(w.reload(job)), "x,one\nada,ada\nbob,bob\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// damage is something that happens to a run's stored pages.
var damages = map[string]func(t *testing.T, tbl table.Table, part string){
	"missing": func(t *testing.T, tbl table.Table, part string) {
		for _, item := range items(t, tbl, part, "p/00000001") {
			if err := tbl.Delete(t.Context(), item.Key, table.Always()); err != nil {
				t.Fatal(err)
			}
		}
	},
	"damaged": func(t *testing.T, tbl table.Table, part string) {
		for _, item := range items(t, tbl, part, "p/00000001") {
			item.Data[len(item.Data)/2] ^= 0x55
			if err := tbl.Put(t.Context(), item, table.Always()); err != nil {
				t.Fatal(err)
			}
		}
	},
	"replaced": func(t *testing.T, tbl table.Table, part string) { // by another page, whole in itself
		from := items(t, tbl, part, "p/00000000")[0]
		for _, item := range items(t, tbl, part, "p/00000001") {
			item.Data = from.Data
			if err := tbl.Put(t.Context(), item, table.Always()); err != nil {
				t.Fatal(err)
			}
		}
	},
}

func TestH8SealedPageThatIsNotWhatItWasFailsTheRun(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.provider.answer = echo
				job := w.start("r", callA, rows(1500)...)
				damage(t, tbl, "run/r/in")
				err := w.failing(t.Context(), job)
				if !strings.Contains(err.Error(), "page 1") || !run.Permanent(err) {
					t.Errorf("got %v, want a permanent error that names page 1", err)
				}
				if text, err := w.tryExport(job); err == nil || text != "" {
					t.Errorf("exported %d bytes, error %v", len(text), err)
				}
			})
		})
	}
}

func TestH8ResultPageThatIsNotWhatItWasFailsTheRun(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.provider.answer = echo
				job := w.start("r", callA, rows(1500)...)
				if res := w.slice(job); res.Outcome != run.Done {
					t.Fatal(res.Outcome)
				}
				damage(t, tbl, "run/r/out")
				text, err := w.tryExport(job)
				if err == nil || !strings.Contains(err.Error(), "page 1") || text != "" {
					t.Errorf("exported %d bytes, error %v, want one that names page 1", len(text), err)
				}
				if job.Run.Status == sheet.Completed {
					t.Error("the run counts as completed")
				}
			})
		})
	}
}

func TestH8PageLostAfterTheEndIsNamedByTheExport(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", callA, rows(1500)...)
		w.finish(job)
		damages["missing"](t, tbl, "run/r/out")
		if _, err := w.tryExport(w.reload(job)); err == nil || !strings.Contains(err.Error(), "page 1") {
			t.Errorf("exported with %v, want an error that names page 1", err)
		}
	})
}
