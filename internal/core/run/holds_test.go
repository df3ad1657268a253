package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

const twoProviders = `
version: 1
name: two
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, when: "${row.x == 'r0'}"}
  - {name: two, call: b.get, with: {x: "${row.x}"}, when: "${row.x != 'r0'}"}
`

// What holds rows is told with its reason: the provider's own word, and a limit that is used up, which stands for all who
// wait in the queue behind it.
func TestRowsOnHoldSayUntilWhenAndWhy(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		began := time.Now()
		asked, limit := call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}, call.Why{Reason: call.RateLimit}
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case time.Since(began) >= time.Hour:
				return echo(a, nth)
			case a.Tool == "a.get":
				return call.Answer{Outcome: call.Held, Dispatched: true, Status: 429, Until: began.Add(time.Hour), Scope: "a-1", Why: asked}
			}
			return call.Answer{Outcome: call.Refused, Until: began.Add(2 * time.Hour), NextFree: began.Add(2 * time.Hour), Scope: "b-2", Why: limit}
		}
		job := w.start("r", twoProviders, rows(3)...)
		w.parked(job)
		left, err := run.BacklogOf(t.Context(), w.st, job.Run)
		if err != nil {
			t.Fatal(err)
		}
		want := []run.Hold{
			{Provider: "a", Scope: "a-1", Why: asked, Until: began.Add(time.Hour), Last: began.Add(time.Hour), Since: began, Rows: 1, Shards: 1},
			{Provider: "b", Scope: "b-2", Why: limit, Until: began.Add(2 * time.Hour), Last: began.Add(2 * time.Hour), Rows: 2, Shards: 1},
		}
		if diff := cmp.Diff(want, left.Holds); diff != "" {
			t.Error(diff)
		}
		var got []call.Why
		for v, err := range w.reload(job).Rows(t.Context(), w.ports()) {
			if err != nil || v.Held == nil {
				t.Fatal(v, err)
			}
			got = append(got, v.Held.Why)
		}
		if !slices.Equal(got, []call.Why{asked, limit, limit}) {
			t.Errorf("the rows wait for %v", got)
		}
		w.finish(job)
	})
}

// A failure that may pass is waited for as such, with its code.
func TestARowThatIsTriedAgainSaysWhatFailed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth == 0 {
				return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Until: time.Now().Add(time.Minute), Scope: "a-1",
					Error: &call.Error{Code: "HTTP_503", Message: "no"}}
			}
			return echo(a, nth)
		}
		job := w.start("r", callA, rows(1)...)
		w.parked(job)
		left, err := run.BacklogOf(t.Context(), w.st, job.Run)
		if err != nil || len(left.Holds) != 1 || left.Holds[0].Why != (call.Why{Reason: call.Backoff, Code: "HTTP_503"}) {
			t.Errorf("%+v, %v", left.Holds, err)
		}
		w.finish(job)
	})
}

// Rows that a slice has taken are at work while it has the shard, and interrupted once it has not.
func TestRowsAtWorkAreInterruptedWhenTheirSliceIs(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		ctx, cancel := context.WithCancel(t.Context())
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), "r1") {
				<-ctx.Done()
				return call.Answer{Outcome: call.Refused}
			}
			return echo(a, nth)
		}
		job := w.start("r", callA, rows(2)...)
		stands := func(working, interrupted int, second string) {
			left, err := run.BacklogOf(t.Context(), w.st, job.Run)
			if err != nil || left.Working != working || left.Interrupted != interrupted {
				t.Errorf("%d at work and %d interrupted, %v; want %d and %d", left.Working, left.Interrupted, err, working, interrupted)
			}
			if got := w.statuses(job, w.st); !slices.Equal(got, []string{run.StatusCompleted, second}) {
				t.Errorf("the rows are %v, want the second %s", got, second)
			}
		}
		time.AfterFunc(2*run.CheckpointEvery+time.Second, func() {
			stands(1, 0, run.StatusWorking)
			cancel()
		})
		if err := w.failing(ctx, job); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		time.Sleep(run.Lease)
		stands(0, 1, run.StatusInterrupted)
		w.provider.answer = echo
		w.finish(w.reload(job))
	})
}
