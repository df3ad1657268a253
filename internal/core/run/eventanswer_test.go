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
	"sluice/internal/core/table"
)

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

// A cancelled run whose rows wait is extended: they go on waiting, under the same question, and new rows beside them.
func TestX4RowsWaitOnWhenTheirRunIsExtended(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = echo
		keyed := strings.Replace(approval, "name: approval", "name: approval\nkey: x", 1)
		w.awaiting(w.start("r", keyed, rows(2)...))
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		w.settle("r")
		job, _ := w.extend("r", keyed, "x", "r1", "new")
		for shard := range 2 {
			if res, err := job.Slice(t.Context(), w.ports(), shard, w.settings); err != nil || res.Outcome != run.Awaiting {
				t.Fatalf("shard %d: %+v, %v", shard, res, err)
			}
		}
		for _, key := range []string{"r1", "new", "r0"} {
			w.answer("approve-"+key, `{"ok": true}`)
		}
		if got, want := w.allShards(job), "x,ok,two\nr0,true,r0/true\nr1,true,r1/true\nnew,true,new/true\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		if n := w.provider.calls("a.post", ""); n != 3 {
			t.Errorf("%d notifications for three rows", n)
		}
	})
}
