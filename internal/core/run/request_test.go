package run_test

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

func timesOut() call.Answer {
	return call.Answer{Outcome: call.Retry, Dispatched: true, Error: &call.Error{Code: "TIMEOUT", Message: "no answer"}}
}

// requests are the ids and fences that the provider saw, as letters in the order in which they came up.
func requests(w *world) (ids, fences string) {
	known := map[string]byte{}
	letter := func(s string) string {
		if _, ok := known[s]; !ok {
			known[s] = byte('A' + len(known))
		}
		return string(known[s])
	}
	for _, a := range w.provider.log() {
		ids += letter(a.request)
	}
	clear(known)
	for _, a := range w.provider.log() {
		fences += letter(a.fence)
	}
	return ids, fences
}

// A request keeps its id over failures after which it may have arrived, and over parks; a definite refusal makes the next
// one another request. What is fenced keeps both.
func TestR8RequestIdentity(t *testing.T) {
	wait := holds(time.Hour)
	early := func() call.Answer {
		return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 425, Error: &call.Error{Code: "HTTP_425", Message: "too early"}}
	}
	unsent := func() call.Answer {
		return call.Answer{Outcome: call.Retry, Error: &call.Error{Code: "NOT_SENT", Message: "refused"}}
	}
	turn := func() call.Answer {
		at := time.Now().Add(time.Second)
		return call.Answer{Outcome: call.Refused, Until: at, NextFree: at}
	}
	for name, tt := range map[string]struct {
		tool   string
		script []func() call.Answer
		ids    string
	}{
		"timeouts":          {"a.get", []func() call.Answer{timesOut, timesOut, timesOut}, "AAAA"},
		"holds and parks":   {"a.get", []func() call.Answer{wait, wait}, "ABC"},
		"timeout, hold":     {"a.get", []func() call.Answer{timesOut, wait, timesOut}, "AABB"},
		"too early":         {"a.get", []func() call.Answer{early, timesOut}, "ABB"},
		"nothing was sent":  {"a.get", []func() call.Answer{unsent, unsent}, "AAA"},
		"not its turn":      {"a.get", []func() call.Answer{turn, turn}, "AAA"},
		"posts":             {"a.post", []func() call.Answer{wait, wait}, "ABC"},
		"posts, not sent":   {"a.post", []func() call.Answer{unsent, wait, turn}, "AABB"},
		"fenced":            {"a.fenced", []func() call.Answer{wait, timesOut, wait, early}, "AAAAA"},
		"fenced idempotent": {"a.put", []func() call.Answer{wait, timesOut, wait}, "AAAA"},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.provider.answer = scripted(tt.tool, "", tt.script...)
				text := strings.ReplaceAll(callA, "a.get", tt.tool)
				if got := w.finish(w.start("r1", text, rows(1)...)); got != "x,one\nr0,r0\n" {
					t.Errorf("got %q", got)
				}
				ids, fences := requests(w)
				if ids != tt.ids || strings.Trim(fences, "A") != "" {
					t.Errorf("requests %s, fences %s; want %s and one fence", ids, fences, tt.ids)
				}
			})
		})
	}
}

// The process dies while the row is held: the number of refusals is on record.
func TestR8RefusalsSurviveACrash(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = scripted("a.get", "", holds(3*time.Second))
		job := w.start("r1", callA, rows(1)...)
		time.AfterFunc(time.Second, func() { f.CrashAt(1, tabletest.NotDone) })
		if err := w.failing(t.Context(), job); err == nil {
			t.Fatal("no crash")
		}
		f.Heal()
		if _, err := w.toTheEnd(callA, rows(1)); err != nil {
			t.Fatal(err)
		}
		if ids, _ := requests(w); ids != "ABB" {
			t.Errorf("requests %s, want ABB: refused, answered and lost with the process, asked again", ids)
		}
	})
}

// Rows that share a call are one call to the provider, also when another of them makes the next attempt.
func TestR8SharedCallsAreOneRequest(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "", timesOut, timesOut)
		w.finish(w.start("r1", callA, same(5)...))
		if ids, _ := requests(w); ids != "AAA" {
			t.Errorf("requests %s, want one id", ids)
		}
	})
}

// A row whose outcome is unknown says which request it is: what a person needs to look for it at the provider.
func TestT2UnknownOutcomeNamesItsRequest(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.post", "", holds(time.Minute), func() call.Answer { return unknownOutcome(call.Attempt{}, 0) })
		job := w.start("r1", unfenced, rows(1)...)
		w.finish(job)
		log := w.provider.log()
		for v, err := range w.reload(job).Rows(t.Context(), w.ports()) {
			if err != nil {
				t.Fatal(err)
			}
			d := v.Error.Dispatch
			if d == nil || d.Tool != "a.post" || d.Request != log[1].request || d.Attempt != 0 || !d.At.Equal(w.provider.started.Add(log[1].at)) {
				t.Errorf("dispatch %+v, want that of %+v", d, log[1])
			}
			want := "cut off (attempt 1 of a.post at " + d.At.Format(time.RFC3339) + ", request " + d.Request + ")"
			if v.Error.Message != want {
				t.Errorf("message %q, want %q", v.Error.Message, want)
			}
		}
	})
}

// After a crash the note of the intent says it.
func TestT8UnknownOutcomeAfterACrashNamesItsRequest(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			f.CrashAt(1, tabletest.NotDone)
			return echo(a, nth)
		}
		job := w.start("r1", unfenced, rows(1)...)
		if err := w.failing(t.Context(), job); err == nil {
			t.Fatal("no crash")
		}
		f.Heal()
		time.Sleep(time.Hour)
		if _, err := w.toTheEnd(unfenced, rows(1)); err != nil {
			t.Fatal(err)
		}
		for v := range w.reload(job).Rows(t.Context(), w.ports()) {
			log := w.provider.log()
			if d := v.Error.Dispatch; v.Status != run.StatusFailed || d == nil || d.Request != log[0].request || !d.At.Equal(w.provider.started.Add(log[0].at)) || len(log) != 1 {
				t.Errorf("dispatch %+v, want that of %+v", d, log)
			}
		}
	})
}
