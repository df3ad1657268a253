package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
		time.Sleep(time.Until(w.awaiting(job).WakeAt))
		if got := w.drive(w.reload(job)); !strings.Contains(got, "EVENT_EXPIRED") {
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
