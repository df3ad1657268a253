package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/link"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

const approval = `
version: 1
name: approval
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - name: ok
    event:
      key: "approve-${row.x}"
      expires: 72h
      notify: {call: a.post, with: {x: "${row.x}", key: "${answer.key}", until: "${answer.expires}"}}
    result: ${result.ok}
  - {name: two, call: b.get, with: {x: "${cells.one}/${cells.ok}"}, result: "${result.x}"}
output: {x: "${row.x}", ok: "${cells.ok}", two: "${cells.two}"}
`

// answer gives an answer.
func (w *world) answer(key, v string) *run.Answered {
	w.t.Helper()
	a, err := run.Answer(w.t.Context(), w.st, key, json.RawMessage(v), run.Whose{})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// drive works slices as a driver does, until the shard is done: where rows wait for answers it looks into the inbox.
func (w *world) drive(job *run.Job) string {
	w.t.Helper()
	for {
		res := w.slice(job)
		switch res.Outcome {
		case run.Done:
			return w.export(w.reload(job))
		case run.Parked, run.Awaiting:
			w.parks = append(w.parks, res.WakeAt)
			w.asleep(job, res)
		case run.Busy:
			w.t.Fatal("the shard is busy")
		}
	}
}

func (w *world) asleep(job *run.Job, res run.Result) {
	w.t.Helper()
	for res.WakeAt.IsZero() || time.Now().Before(res.WakeAt) {
		if res.Outcome == run.Awaiting {
			mail, err := run.Mail(w.t.Context(), w.driver(), run.ShardOf{Run: job.Run.ID})
			if err != nil {
				w.t.Fatal(err)
			}
			if mail {
				return
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// driver is the store as a driver sees it, which is not part of what a test injects faults into.
func (w *world) driver() *store.Store {
	if w.outside != nil {
		return w.outside
	}
	return w.st
}

// awaiting works one slice, and wants it to wait for answers.
func (w *world) awaiting(job *run.Job) run.Result {
	w.t.Helper()
	res := w.slice(job)
	if res.Outcome != run.Awaiting {
		w.t.Fatalf("outcome %+v, want awaiting", res)
	}
	return res
}

func TestEventIsAnsweredAndTheRowGoesOn(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(3)...)
		began := time.Now()
		time.AfterFunc(time.Hour, func() {
			for i := range 3 {
				w.answer(fmt.Sprintf("approve-r%d", i), fmt.Sprintf(`{"ok": %v}`, i != 1))
			}
		})
		if got, want := w.drive(job), "x,ok,two\nr0,true,r0/true\nr1,false,r1/false\nr2,true,r2/true\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(began); took > time.Hour+2*time.Second {
			t.Errorf("the last row ended %v after the answer", took-time.Hour)
		}
		if n := w.provider.calls("a.post", ""); n != 3 {
			t.Errorf("%d notifications, want one for each row", n)
		}
		until := began.Add(72 * time.Hour).UTC().Format(time.RFC3339)
		if n := w.provider.calls("a.post", `"key":"approve-r1","until":"`+until+`"`); n != 1 {
			t.Errorf("asked %+v, want until %s", w.provider.log(), until)
		}
		if n := w.provider.calls("a.get", ""); n != 3 {
			t.Errorf("%d calls before the event, want 3", n)
		}
	})
}

// The end of a wait is fixed when it begins, and somebody is told once, however often the row is replayed (E1).
func TestE1ReplaysNeitherBeginAnewNorNotifyAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(1)...)
		for range 5 {
			res := w.awaiting(job)
			if until := w.provider.started.Add(72 * time.Hour); res.WakeAt.Sub(until).Abs() > time.Second {
				t.Errorf("wakes at %v, want %v", res.WakeAt, until)
			}
			time.Sleep(10 * time.Hour)
			// An answer that turns out to be none brings the row back.
			if err := (&sheet.Letter{Row: 0, Column: 1, Step: 1, Wakes: res.WakeAt}).Post(t.Context(), w.st, "r", 0); err != nil {
				t.Fatal(err)
			}
			job = w.reload(job)
		}
		if n := w.provider.calls("a.post", ""); n != 1 {
			t.Errorf("%d notifications, want 1", n)
		}
		if got := w.drive(job); !strings.Contains(got, "EVENT_EXPIRED") {
			t.Errorf("got %q", got)
		}
		if late := time.Since(w.provider.started) - 72*time.Hour; late < 0 || late > 2*time.Second {
			t.Errorf("ended %v after the end of the wait", late)
		}
	})
}

func TestE2FirstAnswerWins(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(1)...)
		w.awaiting(job)
		if a := w.answer("approve-r0", `{"ok": "first"}`); a.Taken != 1 || a.Already != 0 {
			t.Errorf("first: %+v", a)
		}
		for _, again := range []string{`{"ok": "second"}`, `{"ok": "first"}`} {
			if a := w.answer("approve-r0", again); a.Taken != 0 || a.Already != 1 || string(a.Value) != `{"ok":"first"}` {
				t.Errorf("again: %+v %s", a, a.Value)
			}
		}
		if got, want := w.drive(job), "x,ok,two\nr0,first,r0/first\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if a := w.answer("approve-r0", `{"ok": "third"}`); a.Already != 1 {
			t.Errorf("after the end: %+v", a)
		}
	})
}

func TestE2AnswersAtTheSameMoment(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(1)...)
		w.awaiting(job)
		taken, already := make(chan int, 20), make(chan int, 20)
		for i := range 20 {
			go func() {
				a, err := run.Answer(t.Context(), w.st, "approve-r0", json.RawMessage(fmt.Sprintf(`{"ok":%d}`, i)), run.Whose{})
				if err != nil {
					t.Error(err)
					a = &run.Answered{}
				}
				taken <- a.Taken
				already <- a.Already
			}()
		}
		sum := [2]int{}
		for range 20 {
			sum[0] += <-taken
			sum[1] += <-already
		}
		if sum != [2]int{1, 19} {
			t.Errorf("taken and already: %v, want one and 19", sum)
		}
	})
}

func TestE4Timeouts(t *testing.T) {
	const timeouts = `
version: 1
name: timeouts
columns:
  - {name: a, event: {key: "a-${row.x}", expires: 1h}, onError: {value: gone}}
  - {name: b, event: {key: "b-${row.x}", expires: 1h, onTimeout: {value: "none for ${row.x}"}}}
  - {name: c, event: {key: "c-${row.x}", expires: 1h, onTimeout: park}}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", timeouts, rows(1)...)
		var res run.Result
		for _, wait := range []time.Duration{time.Hour, time.Hour} {
			res = w.awaiting(job)
			if got := time.Until(res.WakeAt).Round(time.Second); got != wait {
				t.Fatalf("wakes in %v, want %v", got, wait)
			}
			time.Sleep(time.Until(res.WakeAt))
		}
		if res = w.awaiting(job); !res.WakeAt.IsZero() {
			t.Errorf("parked for an operator until %v, want no time", res.WakeAt)
		}
		time.Sleep(700 * time.Hour)
		if got := w.statuses(job, w.st); got[0] != run.StatusWaiting {
			t.Errorf("the row is %v", got)
		}
		for _, late := range []string{"a-r0", "b-r0"} {
			if _, err := run.Answer(t.Context(), w.st, late, json.RawMessage("1"), run.Whose{}); !errors.Is(err, run.ErrTooLate) {
				t.Errorf("answer to %s: %v", late, err)
			}
		}
		w.answer("c-r0", `"at last"`)
		if got, want := w.drive(job), "x,a,b,c\nr0,gone,none for r0,at last\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A row that nobody answers fails, and says what it waited for and until when.
func TestE4FailureSaysWhatWasNotAnswered(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", approval, rows(1)...)
		until := time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)
		if got, want := w.drive(job), fmt.Sprintf(`"ok: EVENT_EXPIRED: nobody answered ""approve-r0"" until %s"`, until); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Rows wait for an answer, for a provider, and for time to pass: the shard wakes at the earliest of all (E5).
func TestE5MixedWaits(t *testing.T) {
	const mixed = `
version: 1
name: mixed
columns:
  - {name: nap, sleep: 30m, when: "${row.kind == 'sleep'}"}
  - {name: held, call: a.get, with: {x: "${row.kind}"}, when: "${row.kind == 'hold'}"}
  - {name: ok, event: {key: go, expires: 2h, onTimeout: {value: late}}, when: "${row.kind == 'event'}"}
output: {kind: "${row.kind}", ok: "${cells.ok}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "hold", holds(20*time.Minute), holds(70*time.Minute))
		job := w.start("r", mixed, "kind", "sleep", "hold", "event")
		began := time.Now()
		if got := w.drive(job); got != "kind,ok\nsleep,\nhold,\nevent,late\n" {
			t.Errorf("got %q", got)
		}
		var minutes []int
		for _, at := range w.parks {
			minutes = append(minutes, int(at.Sub(began).Round(time.Minute).Minutes()))
		}
		if want := "[20 30 90 120]"; fmt.Sprint(minutes) != want {
			t.Errorf("woke after %v minutes, want %s", minutes, want)
		}
	})
}

// One answer serves every row that waits for its key; naming a run leaves those of others alone.
func TestAnswerReachesAllWhoWait(t *testing.T) {
	const shared = `
version: 1
name: shared
columns:
  - {name: ok, event: {key: go}}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		jobs := map[string]*run.Job{}
		for _, id := range []string{"r", "s"} {
			jobs[id] = w.start(id, shared, rows(3)...)
			w.awaiting(jobs[id])
		}
		a, err := run.Answer(t.Context(), w.st, "go", json.RawMessage(`1`), run.Whose{Run: "s"})
		if err != nil || a.Taken != 3 || len(a.Wake) != 1 || a.Wake[0] != (run.ShardOf{Run: "s"}) {
			t.Errorf("%+v, %v", a, err)
		}
		one := run.Whose{Place: &link.Place{Run: "r", Row: 1, Step: 1, Key: "go"}}
		if a, err = run.Answer(t.Context(), w.st, "go", json.RawMessage(`2`), one); err != nil || a.Taken != 1 {
			t.Errorf("%+v, %v", a, err)
		}
		if a = w.answer("go", `3`); a.Taken != 2 || a.Already != 4 {
			t.Errorf("%+v", a)
		}
		if got := w.drive(jobs["s"]); got != "x,ok\nr0,1\nr1,1\nr2,1\n" {
			t.Errorf("s: %q", got)
		}
		if got := w.drive(jobs["r"]); got != "x,ok\nr0,3\nr1,2\nr2,3\n" {
			t.Errorf("r: %q", got)
		}
	})
}

func TestAnswersThatCannotBeTaken(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		w.awaiting(w.start("r", approval, rows(1)...))
		for _, c := range []struct {
			key, value string
			want       error
		}{
			{"approve-r9", "1", run.ErrNobodyWaits}, {"", "1", run.ErrBadAnswer}, {"approve-r0", "", run.ErrBadAnswer},
			{"approve-r0", "{", run.ErrBadAnswer}, {"approve-r0", "1e999", run.ErrBadAnswer}, {"approve-r0", "1 2", run.ErrBadAnswer},
			{"approve-r0", `"` + strings.Repeat("x", run.MaxAnswer) + `"`, run.ErrBadAnswer},
			{strings.Repeat("k", 501), "1", run.ErrBadAnswer},
		} {
			if _, err := run.Answer(t.Context(), w.st, c.key, json.RawMessage(c.value), run.Whose{}); !errors.Is(err, c.want) {
				t.Errorf("%.20q %.20q: %v, want %v", c.key, c.value, err, c.want)
			}
		}
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		w.settle("r")
		if _, err := run.Answer(t.Context(), w.st, "approve-r0", json.RawMessage("1"), run.Whose{}); !errors.Is(err, run.ErrTooLate) {
			t.Errorf("of a cancelled run: %v", err)
		}
	})
}

// An answer too large for an item of the table takes the way of large cells.
func TestLargeAnswer(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		job := w.start("r", `
version: 1
columns:
  - {name: ok, event: {key: "${row.x}"}}
  - {name: n, value: "${size(cells.ok)}"}
output: {n: "${cells.n}"}
`, rows(1)...)
		w.awaiting(job)
		noise := make([]byte, 0, run.MaxAnswer)
		for i := 0; len(noise) < run.MaxAnswer-100; i++ {
			noise = fmt.Appendf(noise, "%x", i*i*2654435761)
		}
		w.answer("r0", `"`+string(noise)+`"`)
		if got, want := w.drive(job), fmt.Sprintf("n\n%d\n", len(noise)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A notification that fails for good ends the wait, because nobody knows of
// it; and of one that may have been made or not, the answer or the time decides.
func TestNotifications(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			in := string(a.Input)
			switch {
			case a.Tool != "a.post":
			case strings.Contains(in, `"r1"`):
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no such channel"}}
			case strings.Contains(in, `"r2"`):
				return call.Answer{Outcome: call.Unknown, Dispatched: true, Error: &call.Error{Code: "OUTCOME_UNKNOWN", Message: "?"}}
			}
			return echo(a, nth)
		}
		job := w.start("r", approval, rows(3)...)
		w.awaiting(job)
		if _, err := run.Answer(t.Context(), w.st, "approve-r1", json.RawMessage("1"), run.Whose{}); !errors.Is(err, run.ErrTooLate) {
			t.Errorf("answer of what nobody knows of: %v", err)
		}
		w.answer("approve-r2", `{"ok": 2}`)
		w.answer("approve-r0", `{"ok": 0}`)
		got := w.drive(job)
		for _, want := range []string{"r0,0,r0/0", "r1,,,failed,ok: HTTP_422", "r2,2,r2/2"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %q", want, got)
			}
		}
	})
}

func TestNotificationThatIsPutOffIsMadeLater(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.post", "r0", holds(time.Hour))
		job := w.start("r", approval, rows(1)...)
		time.AfterFunc(2*time.Hour, func() { w.answer("approve-r0", `{"ok": 0}`) })
		if got, want := w.drive(job), "x,ok,two\nr0,0,r0/0\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.provider.times("a.post", ""); !near(got, seconds(0, 3600)) {
			t.Errorf("somebody was told at %v", got)
		}
	})
}

// An answer that comes while the notification is on hold is taken at once, and the notification is not made any more.
func TestAnswerBeforeTheNotification(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.post", "r0", holds(time.Hour))
		job := w.start("r", approval, rows(1)...)
		w.slice(job)
		w.answer("approve-r0", `{"ok": true}`)
		if res := w.slice(job); res.Outcome != run.Done {
			t.Errorf("%+v", res)
		}
		if n := w.provider.calls("a.post", ""); n != 1 {
			t.Errorf("%d notifications", n)
		}
	})
}

// A row whose event has expired, and that is run again, asks again: it does not meet the end of its earlier wait.
func TestWaiterOfARowThatIsRunAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.start("r", approval, rows(1)...)
		wait := func(until time.Time) *sheet.Waiter {
			return &sheet.Waiter{Key: "k", Run: "r", Until: until}
		}
		first := wait(time.Now().Add(time.Hour))
		if err := first.Register(t.Context(), w.st, true); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Settle(t.Context(), w.st, sheet.WaiterExpired, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		second := wait(time.Now().Add(2 * time.Hour))
		for _, fresh := range []bool{true, false, true} {
			if err := second.Register(t.Context(), w.st, fresh); err != nil || second.State != sheet.WaiterOpen {
				t.Fatalf("%s, %v", second.State, err)
			}
		}
		if a := w.answer("k", "1"); a.Taken != 1 {
			t.Errorf("%+v", a)
		}
		late := wait(time.Now().Add(time.Hour))
		if err := late.Register(t.Context(), w.st, false); !errors.Is(err, sheet.ErrOlder) {
			t.Errorf("the earlier wait comes back: %v", err)
		}
	})
}

// As many rows are held as may be: one whose time has come, or that has been answered, waits until there is room, and the
// shard does not look in vain for as long.
func TestQ9NoRowComesBackWhileNoMoreMayWait(t *testing.T) {
	const full = `
version: 1
name: full
columns:
  - {name: ok, event: {key: "${row.x}", expires: 24h}, when: "${row.kind == 'event'}"}
  - {name: nap, sleep: 10m, when: "${row.kind == 'sleep'}"}
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
output: {x: "${row.x}", ok: "${cells.ok}", one: "${cells.one}"}
`
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.settings.MaxWaiting, w.settings.Concurrency = 2, 1
		w.provider.answer = scripted("a.get", "h", holds(time.Hour), holds(time.Hour))
		job := w.start("r", full, "x,kind", "e,event", "s,sleep", "h1,hold", "h2,hold")
		began := time.Now()
		time.AfterFunc(20*time.Minute, func() { w.answer("e", "true") })
		if got, want := w.drive(job), "x,ok,one\ne,true,e\ns,,s\nh1,,h1\nh2,,h2\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if slices := w.checkpoint(job).Stats.Slices; slices > 6 || time.Since(began) > 5*time.Hour {
			t.Errorf("%d slices in %v", slices, time.Since(began))
		}
	})
}
