package run_test

import (
	"context"
	"errors"
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

const posting = `
version: 1
name: posting
columns:
  - {name: one, call: a.post}
`

func unknownOutcome(call.Attempt, int) call.Answer {
	return call.Answer{Outcome: call.Unknown, Dispatched: true, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "cut off"}}
}

// A call that must not be repeated, and of which nobody knows whether it arrived, is shown as such and never sent again.
func TestT2UnknownOutcomeIsShownAndNotRepeated(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = unknownOutcome
		job := w.start("r", posting, rows(2)...)
		got := w.finish(job)
		if strings.Count(got, "OUTCOME_UNKNOWN") != 2 || len(w.provider.log()) != 2 {
			t.Errorf("%d calls, table %q", len(w.provider.log()), got)
		}
	})
}

// interrupted is a gateway whose exchanges are interrupted by a cancellation, as those over HTTP are.
type interrupted struct{ *provider }

func (g interrupted) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	inner := g.provider.answer
	p := &provider{started: g.started, answer: func(a call.Attempt, nth int) call.Answer {
		select {
		case <-time.After(10 * time.Second):
			return inner(a, nth)
		case <-ctx.Done():
			return unknownOutcome(a, nth)
		}
	}}
	err := p.Execute(ctx, batch, deliver)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, p.asked...)
	return err
}

// The run is cancelled while such a call is under way: what is known of it is saved, and a resume does not send it again.
func TestT2CancelledCallThatMayHaveArrivedIsNotRepeated(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", posting, rows(2)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		ports, begun := w.ports(), time.Now()
		ports.Gateway = interrupted{w.provider}
		if _, err := job.Slice(ctx, ports, 0, w.settings); !errors.Is(err, context.Canceled) || time.Since(begun) > time.Second {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		got := w.finish(w.reload(job))
		if n := len(w.provider.log()); n != 2 || strings.Count(got, "OUTCOME_UNKNOWN") != 2 {
			t.Errorf("%d calls, table %q, want each call once, and that its outcome is unknown", n, got)
		}
	})
}

// The journal cannot be written any more: calls whose results could not be saved are not made.
func TestT5NoDispatchAfterAFailedWrite(t *testing.T) {
	for name, mapText := range map[string]string{"one call": callA, "two calls": twoCalls} {
		for _, slow := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				onEveryStore(t, func(t *testing.T, tbl table.Table) {
					w, f := newFaultyWorld(t, tbl)
					w.settings.Concurrency = 4
					var mu sync.Mutex
					var failedAt time.Duration
					w.provider.answer = func(a call.Attempt, nth int) call.Answer {
						time.Sleep(100 * time.Millisecond)
						answer := echo(a, nth)
						if slow { // everybody waits for a turn, which comes after the failure
							answer.NextFree = time.Now().Add(time.Second)
						}
						return answer
					}
					job := w.start("r", mapText, rows(200)...)
					f.OnOp(func(e tabletest.Event) {
						mu.Lock()
						defer mu.Unlock()
						if errors.Is(e.Err, errStore) && failedAt == 0 {
							failedAt = time.Since(w.provider.started)
						}
					})
					f.Inject(tabletest.Fault{On: puts(isJournal), Skip: 3, Err: errStore})
					if err := w.failing(t.Context(), job); !errors.Is(err, sheet.ErrJournal) {
						t.Errorf("got %v, want ErrJournal", err)
					}
					for _, a := range w.provider.log() {
						if failedAt == 0 || a.at > failedAt {
							t.Errorf("%s was dispatched at %v, the write had failed at %v", a.input, a.at, failedAt)
						}
					}
					f.Heal()
					if got := w.finish(w.reload(job)); strings.Count(got, "\n") != 201 || strings.Contains(got, "failed") {
						t.Errorf("afterwards %d lines", strings.Count(got, "\n"))
					}
				})
			})
		}
	}
}

// What a later column sees of a result is the same in the pass that made the call and in one that found it on record.
func TestT9LaterColumnsSeeTheResultExactly(t *testing.T) {
	const exact = `
version: 1
name: exact
columns:
  - {name: got, call: a.get, with: {x: "${row.x}"}}
  - {name: before, value: "${cells.got}"}
  - {name: gate, call: b.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: after, value: "${cells.got}"}
  - {name: sum, value: "${cells.got.int + 1}"}
  - {name: kinds, value: "${[type(cells.got.int) == int, type(cells.got.float) == double, cells.got.none == null, size(cells.got.list), cells.got.nested.deep[0].k]}"}
  - {name: text, value: "${cells.got.text}"}
`
	const answer = `{"big":9007199254740993,"empty":{},"float":1.5,"int":9007199254740991,"list":[],"nested":{"deep":[{"k":"v"}]},"none":null,"text":"Zoë 🦉 \"q\" \\ <b> &\u2028"}`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		var tables []string
		for _, park := range []bool{false, true} {
			w := newWorld(t, tbl)
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				switch {
				case a.Tool == "a.get":
					return call.Answer{Outcome: call.Result, Value: []byte(answer), Dispatched: true}
				case park && nth == 0:
					return heldFor(time.Hour)
				}
				return echo(a, nth)
			}
			job := w.start(map[bool]string{false: "straight", true: "parked"}[park], exact, rows(1)...)
			if park {
				time.Sleep(w.parked(job))
			}
			tables = append(tables, w.finish(w.reload(job)))
			for v := range job.Rows(t.Context(), run.Ports{Store: w.st}) {
				cells := v.Cells
				if cells["sum"] != int64(9007199254740992) || cells["text"] != "Zoë 🦉 \"q\" \\ <b> &\u2028" {
					t.Errorf("parked %v: %v", park, cells)
				}
			}
		}
		if tables[0] != tables[1] || !strings.Contains(tables[0], "9007199254740993") || !strings.Contains(tables[0], "[true,true,true,0,") {
			t.Errorf("without a park\n%s\nwith one\n%s", tables[0], tables[1])
		}
	})
}

// Our own platform's refusals are not the provider's: nothing was sent, no attempt is charged, nobody is held.
func TestH15T4RefusalOfThePlatformIsNotTheProviders(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if nth < 2 {
				at := time.Now().Add(time.Second)
				return call.Answer{Outcome: call.Refused, Until: at, NextFree: at}
			}
			return echo(a, nth)
		}
		job := w.start("r", callA, rows(3)...)
		if res := w.slice(job); res.Outcome != run.Done {
			t.Fatalf("the slice ended %s, want done", res.Outcome)
		}
		stats := w.checkpoint(job).Stats
		if stats.Refused429 != 0 || stats.Dispatched != 3 || stats.HeldMs != 0 {
			t.Errorf("stats %+v, want 3 dispatches and no refusal by the provider", stats)
		}
		for _, a := range w.provider.log() {
			if a.number != 0 {
				t.Errorf("a refusal was charged: attempt %d", a.number)
			}
		}
	})
}

// A provider that refuses connections is tried for a minute, with waits that grow, over however many parks that takes.
// No attempt is charged; then the row says that nothing was sent.
func TestT1NothingSentIsTriedForAMinute(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(call.Attempt, int) call.Answer {
			return call.Answer{Outcome: call.Retry, Error: &call.Error{Code: "NOT_SENT", Message: "connection refused"}}
		}
		began := time.Now()
		got := w.finish(w.start("r1", posting, "x", "1"))
		if !strings.Contains(got, "one: NOT_SENT: connection refused") {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took < unsentFor || took > 2*unsentFor {
			t.Errorf("it was tried for %v", took)
		}
		if n := len(w.provider.asked); n < 4 || n > 12 {
			t.Errorf("it was tried %d times", n)
		}
		for _, a := range w.provider.asked {
			if a.number != 0 {
				t.Errorf("attempt %d was charged", a.number)
			}
		}
	})
}

const unsentFor = time.Minute
