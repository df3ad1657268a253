package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.Local)

func TestLinesAreToldWhenSomethingHasChanged(t *testing.T) {
	var out syncBuffer
	l := &lines{w: &out}
	s := standing{Total: 600, Done: 120, Failed: 3, Held: 41, Cost: 1_230_000, Rate: 9.84, Left: 48 * time.Second,
		Holds: []hold{{Provider: "acme", Why: "429", Until: noon.Add(190 * time.Second), Rows: 41}}}
	l.show(s, noon)
	s.Rate = 9.7
	l.show(s, noon.Add(3*time.Second)) // nothing but the rate
	s.Rate, s.Left, s.Parked, s.ParkedUntil = 0, 0, true, noon.Add(36*time.Hour)
	l.show(s, noon.Add(6*time.Second))
	l.say("told anyway")
	same(t, out.String(), strings.Join([]string{
		"12:00:00 123 of 600 rows (20%), 3 failed, 41 held; 9.8 rows/s, about 48.0s left, cost 1.23; acme: 429 until 12:03:10 (41 rows waiting)",
		"12:00:06 123 of 600 rows (20%), 3 failed, 41 held; cost 1.23; parked until 2026-03-04 00:00:00; acme: 429 until 12:03:10 (41 rows waiting)",
		"told anyway", ""}, "\n"))
}

func TestEstimateIsLeftOutWhenItIsNotKnown(t *testing.T) {
	var v speed
	steps := []struct {
		at    time.Duration
		ended int64
		rate  float64
	}{
		{0, 100, 0},                          // a resumed run: what was done before says nothing
		{100 * time.Millisecond, 110, 0},     // too short to tell
		{10 * time.Second, 200, 10},          // 100 rows in 10 s
		{20 * time.Second, 200, 5},           // stalled: 100 rows in 20 s
		{50 * time.Second, 200, 0},           // nothing for longer than the window
		{51 * time.Second, 231, 31.0 / 31.0}, // the window reaches back to the 20th second
	}
	for _, step := range steps {
		v.note(noon.Add(step.at), step.ended)
		if got := v.rate(); got != step.rate {
			t.Errorf("after %v: %v rows/s, want %v", step.at, got, step.rate)
		}
	}
	for _, test := range []struct {
		rows int64
		rate float64
		want time.Duration
	}{{100, 10, 10 * time.Second}, {0, 10, 0}, {100, 0, 0}, {-1, 1, 0}, {1e9, 1e-9, 0}, {1, 1000, time.Second}} {
		if got := left(test.rows, test.rate); got != test.want {
			t.Errorf("left(%d, %v) = %v, want %v", test.rows, test.rate, got, test.want)
		}
	}
	s := standing{Total: 100, Done: 90, Rate: 10, Holds: []hold{{Provider: "acme", Until: noon.Add(30 * time.Second), Rows: 3}}}
	if got := s.estimate(noon); got != 30*time.Second {
		t.Errorf("%v left, though rows are held for 30 s", got)
	}
	if got := (standing{Total: 10, Holds: s.Holds}).estimate(noon); got != 0 {
		t.Errorf("%v left at an unknown rate", got)
	}
	same(t, standing{}.counts()+"|"+standing{}.pace(), "0 of 0 rows|")
}

func TestShortHoldsAreOrdinaryPacing(t *testing.T) {
	s := fromSnapshot(run.Snapshot{Counts: sheet.Counts{Completed: 5}, Holds: []run.ScopeHold{
		{Provider: "b", Until: noon.Add(50 * time.Millisecond)},
		{Provider: "c", Until: noon.Add(time.Minute), Rows: 1, Why: call.Why{Reason: call.RateLimit}},
		{Provider: "a\x1b", Until: noon.Add(time.Hour), Rows: 2, Why: call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}},
	}}, 9, noon)
	var got []string
	for _, h := range s.Holds {
		got = append(got, h.text(noon))
	}
	same(t, strings.Join(got, "\n"), `a\x1b: 429 until 13:00:00 (2 rows waiting)`+"\nc: its limit is used up until 12:01:00 (1 row waiting)")
}

// The display shows, changes and takes away its lines while it is drawn, and ends.
func TestDisplayShowsTheRunAndEnds(t *testing.T) {
	var out syncBuffer
	d := newDisplay(&out, 600)
	s := standing{Total: 600, Done: 300, Rate: 10, Left: 30 * time.Second}
	held := s
	held.Parked, held.ParkedUntil = true, noon.Add(time.Minute)
	held.Holds = []hold{{Provider: "acme", Why: "429", Until: noon.Add(time.Minute), Rows: 7}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				d.show(s, noon)
				d.show(held, noon)
			}
		})
	}
	wg.Wait()
	d.say("sluice: parking")
	eventually(t, "it is all drawn", func() bool {
		d.show(held, noon)
		text := out.String()
		return strings.Contains(text, "300 of 600 rows (50%)") && strings.Contains(text, "parked until 12:01:00 (in 1m00s)") &&
			strings.Contains(text, "acme: 429 until 12:01:00 (7 rows waiting)") && strings.Contains(text, "sluice: parking")
	})
	s.Done = 600
	d.show(s, noon) // a full bar does not end the display before its time
	d.show(s, noon)
	d.close()
	d.say("after the end")
	if !strings.HasSuffix(out.String(), "after the end\n") {
		t.Errorf("it says %q", out.String())
	}
}

func TestWhatATerminalWouldObeyIsEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 🎉":        "plain äöü 🎉",
		"\x1b[31mred":        `\x1b[31mred`,
		"a\nb\tc\r":          `a\nb\tc\r`,
		"csi \u009b2J":       `csi \x9b2J`,
		"rtl \u202eevil":     `rtl \u202eevil`,
		"broken \xff utf-8":  `broken \xff utf-8`,
		"a real \ufffd mark": "a real \ufffd mark",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	same(t, cleanLines("a:1:2: x\x07\nb"), "a:1:2: x\\x07\nb")
	text, err := marshal(map[string]string{"a": "<\u009b\x1b\u202e>"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, text, `{"a":"<\u009b\u001b\u202e>"}`)
	var out syncBuffer
	fmt.Fprint(escapingWriter{&out}, "a,\x1b\nb\n")
	same(t, out.String(), "a,\\x1b\nb\n")
}

func TestNumbersForPeople(t *testing.T) {
	for micros, want := range map[int64]string{0: "0", 1: "0.000001", 10_000: "0.01", 1_500_000: "1.5", -2_000_000: "-2", 12_345_678: "12.345678"} {
		same(t, sheet.Money(micros), want)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		same(t, number(n), want)
	}
	for d, want := range map[time.Duration]string{-1: "0s", 850 * time.Millisecond: "850ms", 12340 * time.Millisecond: "12.3s",
		245 * time.Second: "4m05s", 200 * time.Minute: "3h20m", 52 * time.Hour: "2d4h"} {
		same(t, span(d), want)
	}
	same(t, quoteArg("a b'c"), `'a b'\''c'`)
	same(t, shorten("äöüß", 3), "äö…")
}

func TestErrorsKeepTheirExitCode(t *testing.T) {
	for want, err := range map[int]error{
		exitOK: nil, exitFailed: errors.New("x"), exitUsage: errors.Join(usagef("x"), nil), exitRowsFailed: errors.Join(&exit{code: exitRowsFailed}, nil),
	} {
		var out syncBuffer
		if got := (&app{stderr: &out}).fail(err); got != want {
			t.Errorf("%v exits %d, want %d", err, got, want)
		}
	}
}

func TestEveryReasonHasWords(t *testing.T) {
	said := map[string]call.Reason{}
	for _, reason := range []call.Reason{call.RateLimit, call.Concurrency, call.Backoff, call.Credential, call.Identical, call.Platform, call.Boundary} {
		words := whyText(call.Why{Reason: reason, Code: "HTTP_503"})
		if before, twice := said[words]; twice || words == "held" {
			t.Errorf("%s and %s are both %q", reason, before, words)
		}
		said[words] = reason
	}
	for _, reason := range []call.Reason{call.RetryAfter, call.Cooldown} { // which it was does not matter in a line
		same(t, whyText(call.Why{Reason: reason, Code: "HTTP_429"}), "429")
	}
	same(t, whyText(call.Why{}), "held")
}
