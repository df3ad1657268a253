package run_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// A row whose resolver failed is run again: what its operations had come to is taken, and the failed one is done anew.
func TestX4AResolverGoesOnWhereItFailed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		var down atomic.Bool
		down.Store(true)
		w := newWorld(t, tbl).with(func(c resolver.Cell, with map[string]any) (any, error) {
			first, err := c.Call("a.get", map[string]any{"x": "first"})
			if err != nil {
				return nil, err
			}
			if err := c.Sleep(time.Hour); err != nil {
				return nil, err
			}
			n, err := c.Step("n", func() (any, error) { return 7, nil })
			if err != nil {
				return nil, err
			}
			ok, err := c.Event(resolver.Event{Key: "k"})
			if err != nil {
				return nil, err
			}
			last, err := c.Call("b.get", map[string]any{"x": "last"})
			if err != nil {
				return nil, err
			}
			return fmt.Sprintf("%v%v%v%v", first.(map[string]any)["x"], n, ok, last.(map[string]any)["x"]), nil
		})
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if strings.Contains(string(a.Input), `"last"`) && down.Load() {
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no", Status: 422, Dispatched: true}}
			}
			return echo(a, nth)
		}
		job := w.start("r", resolved, rows(1)...)
		time.AfterFunc(2*time.Hour, func() { w.answer("k", `"yes"`) })
		if got := w.drive(job); !strings.Contains(got, "mid: HTTP_422") {
			t.Fatalf("got %q", got)
		}
		down.Store(false)
		w.retry("r", run.RetryOptions{})
		began := time.Now()
		if got := w.drive(w.reload(job)); got != "x,two\nr0,first7yeslast\n" {
			t.Errorf("got %q", got)
		}
		if n := w.provider.calls("a.get", `"first"`); n != 1 || time.Since(began) > time.Minute {
			t.Errorf("the first call was made %d times, and it took %v", n, time.Since(began))
		}
	})
}

// A row whose event expired asks anew when it is run again, with a time of its own.
func TestX4AnExpiredEventIsAskedAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(1)...)
		time.Sleep(time.Until(w.awaiting(job).WakeAt))
		if got := w.drive(w.reload(job)); !strings.Contains(got, "EVENT_EXPIRED") {
			t.Fatalf("got %q", got)
		}
		w.retry("r", run.RetryOptions{})
		job = w.reload(job)
		res := w.awaiting(job)
		if got := time.Until(res.WakeAt).Round(time.Minute); got != 72*time.Hour {
			t.Errorf("waits for %v", got)
		}
		w.answer("approve-r0", `{"ok": true}`)
		if got := w.drive(job); got != "x,ok,two\nr0,true,r0/true\n" {
			t.Errorf("got %q", got)
		}
		if n := w.provider.calls("a.get", ""); n != 1 {
			t.Errorf("the call before the event was made %d times", n)
		}
		if n := w.provider.calls("a.post", ""); n != 2 {
			t.Errorf("somebody was told %d times, want once for each time that it was asked", n)
		}
	})
}

// A resolver's call whose outcome is unknown is repeated, or taken for executed, as its user says.
func TestX4TheUnknownOutcomeOfAResolversCall(t *testing.T) {
	for name, tc := range map[string]struct {
		how   run.RetryOptions
		want  string
		posts int
	}{
		"accepted": {run.RetryOptions{Unknown: run.AcceptUnknown, Value: []byte(`{"x": "given"}`)}, "x,two\nr0,given\n", 1},
		"repeated": {run.RetryOptions{Unknown: run.RepeatUnknown}, "x,two\nr0,posted\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			onMemory(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl).with(func(c resolver.Cell, _ map[string]any) (any, error) {
					v, err := c.Call("a.post", map[string]any{"x": "posted"})
					if err != nil {
						return nil, err
					}
					return v.(map[string]any)["x"], nil
				})
				w.provider.answer = func(a call.Attempt, nth int) call.Answer {
					if a.Tool == "a.post" && nth == 0 {
						return call.Answer{Outcome: call.Unknown, Dispatched: true, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "?"}}
					}
					return echo(a, nth)
				}
				job := w.start("r", resolved, rows(1)...)
				if got := w.drive(job); !strings.Contains(got, "mid: OUTCOME_UNKNOWN") {
					t.Fatalf("got %q", got)
				}
				w.retry("r", tc.how)
				if got := w.drive(w.reload(job)); got != tc.want || w.provider.calls("a.post", "") != tc.posts {
					t.Errorf("got %q with %d calls", got, w.provider.calls("a.post", ""))
				}
			})
		})
	}
}
