package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// impatient are tools whose providers have the default noProgress of 30 minutes.
var impatient = strings.ReplaceAll(tools, ", noProgress: 30d", "")

func (w *world) startImpatient(mapText string, lines ...string) *run.Job {
	w.t.Helper()
	job, err := w.startOf("r1", mapText, impatient, lines...)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// exhaustedRows counts the rows that failed for want of progress.
func exhaustedRows(text string) int { return strings.Count(text, "PROVIDER_EXHAUSTED") }

// The provider says "in ten minutes", and again, and again. After half an hour without one success the calls that wait
// end; what was done stays, and so does the other provider's work. The streak outlives the parks in between.
func TestR5NoSuccessForHalfAnHour(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "a.get" && !strings.Contains(string(a.Input), "first") {
				return heldFor(10 * time.Minute)
			}
			return echo(a, nth)
		}
		job := w.startImpatient(byProvider, "x,p", "first,a", "r1,a", "r2,a", "r3,b")
		began := time.Now()
		got := w.finish(job)
		if exhaustedRows(got) != 2 || !strings.Contains(got, "first,a,first,,completed") || !strings.Contains(got, "r3,b,,r3,completed") {
			t.Errorf("got %s", got)
		}
		if took := time.Since(began); took < 30*time.Minute || took > 31*time.Minute || len(w.parks) != 3 {
			t.Errorf("after %v and %d parks, want 30 m and 3", took, len(w.parks))
		}
		for _, part := range []string{"a has answered no call since 2000-01-01T00:00:00Z", "until 2000-01-01T00:40:0", "noProgress of 30m", "saved", "run again"} {
			if !strings.Contains(got, part) {
				t.Errorf("the message does not say %q: %s", part, got)
			}
		}
		if cp := w.checkpoint(job); len(cp.Streaks) != 0 {
			t.Errorf("a shard that is done remembers %v", cp.Streaks)
		}
	})
}

// A hold that reaches past the deadline need not be waited for; the rows that are held for the same scope end with it.
func TestR5HoldPastTheDeadlineEndsAtOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(time.Second) // by then all are on their way
			if strings.Contains(string(a.Input), "r0") {
				return heldFor(25 * time.Minute)
			}
			time.Sleep(time.Second)
			return heldFor(time.Hour)
		}
		got := w.finish(w.startImpatient(callA, rows(20)...))
		if exhaustedRows(got) != 20 || len(w.parks) != 0 || time.Since(w.provider.started) > time.Minute {
			t.Errorf("%d rows ended after %v and %d parks, want all 20 at once", exhaustedRows(got), time.Since(w.provider.started), len(w.parks))
		}
	})
}

// The first success clears the streak, also that of a provider that refuses most of the time.
func TestR5SuccessClearsTheStreak(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.Concurrency = 1
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth < 2 {
				return heldFor(14 * time.Minute)
			}
			return echo(a, nth)
		}
		got := w.finish(w.startImpatient(callA, rows(5)...))
		if want := "x,one\nr0,r0\nr1,r1\nr2,r2\nr3,r3\nr4,r4\n"; got != want {
			t.Errorf("got %s", got)
		}
		if took := time.Since(w.provider.started); took < time.Hour {
			t.Errorf("it took %v: the test shows nothing", took)
		}
	})
}

// Two credentials of one provider are two scopes: one that has taken the other's place is given its own half hour.
func TestR5TwoCredentials(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			answer := heldFor(20 * time.Minute)
			answer.Scope = []string{"a-1", "a-2", "a-2"}[nth]
			if nth == 2 {
				answer = echo(a, nth)
			}
			return answer
		}
		job := w.startImpatient(callA, rows(1)...)
		if got := w.finish(job); got != "x,one\nr0,r0\n" || time.Since(w.provider.started) < 40*time.Minute {
			t.Errorf("after %v: %s", time.Since(w.provider.started), got)
		}
	})
}

// Waiting for one's turn is no lack of progress, however slow the catalogue's limits are.
func TestR5WaitingForOnesTurnIsProgress(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1, per: 2h}]")
		job := p.plan("r", callA, rows(3)...)
		p.process("one", job)
		if got := p.export(p.reload(job)); got != "x,one\nr0,r0\nr1,r1\nr2,r2\n" || time.Since(p.site.started) < 4*time.Hour {
			t.Errorf("after %v: %s", time.Since(p.site.started), got)
		}
	})
}

// Calls that the pacer holds back for what the provider told somebody else wait for the provider, too: with the real
// gateway every row ends, and few of them have asked.
func TestR5HoldsThatOthersMetCount(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}], concurrency: 2")
		p.site.answer = func(string, int) *gateway.Response { return refusal("Retry-After", "7200") }
		job := p.plan("r", callA, rows(200)...)
		if parks := p.process("one", job); parks != 0 {
			t.Errorf("%d parks", parks)
		}
		if got := p.export(p.reload(job)); exhaustedRows(got) != 200 || len(p.site.hits()) > 4 {
			t.Errorf("%d rows ended after %d requests: %s", exhaustedRows(got), len(p.site.hits()), got)
		}
	})
}

// A run that was left alone for a day asks afresh.
func TestR5OldStreaksAreForgotten(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "", holds(20*time.Minute), holds(20*time.Minute))
		job := w.startImpatient(callA, rows(1)...)
		w.parked(job)
		time.Sleep(24 * time.Hour)
		if got := w.finish(w.reload(job)); got != "x,one\nr0,r0\n" {
			t.Errorf("got %s", got)
		}
	})
}

// A crash does not begin the half hour anew.
func TestR5StreakSurvivesACrash(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			return heldFor(50 * time.Second)
		}
		job := w.startImpatient(callA, rows(1)...)
		for range 20 {
			time.AfterFunc(4*time.Minute, func() { f.CrashAt(1, tabletest.NotDone) })
			for !f.Crashed() {
				ports := w.ports()
				ports.Alive = func(string) bool { return false }
				res, err := job.Slice(t.Context(), ports, 0, w.settings)
				if res.Outcome == run.Done {
					if at := time.Since(w.provider.started); at < 29*time.Minute || at > 31*time.Minute {
						t.Errorf("it ended after %v", at)
					}
					return
				}
				if err == nil {
					time.Sleep(time.Until(res.WakeAt))
				}
			}
			f.Heal()
			job = w.reload(job)
		}
		t.Error("it never ended")
	})
}
