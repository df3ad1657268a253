package mapspec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func waitsMap(t *testing.T) *Map {
	t.Helper()
	m, err := ParseMap("waits.yaml", readTestdata(t, "waits.yaml"), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMapOfWaits(t *testing.T) {
	m := waitsMap(t)
	env := &Env{Row: map[string]any{"email": "ann@acme.de", "first": "Ann", "pause": "90"}, Cells: map[string]any{"pause": "x"}, Vars: m.Vars}
	if d, err := m.Columns[0].Sleep.Eval(env); err != nil || d != 36*time.Hour {
		t.Error(d, err)
	}
	approved := m.Columns[2]
	if key, err := approved.Event.KeyOf(env); err != nil || key != "approve-ann@acme.de" {
		t.Error(key, err)
	}
	if d, err := approved.Event.Expires.Eval(env); err != nil || d != 72*time.Hour {
		t.Error(d, err)
	}
	env.Answer = Answer("k", "https://a.example/x", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	with, err := approved.Steps[0].Arguments(env)
	if want := map[string]any{"domain": "https://a.example/x until 2026-01-02T03:04:05Z: k"}; err != nil || cmp.Diff(want, with) != "" {
		t.Error(with, err)
	}
	if v, err := approved.Event.Default.Eval(env); err != nil || v != "x" || approved.Event.OnTimeout != TimeoutValue {
		t.Error(v, err, approved.Event.OnTimeout)
	}
	env.Result = map[string]any{"ok": true}
	if v, err := approved.Event.Result.Eval(env); err != nil || v != true {
		t.Error(v, err)
	}
	forever := m.Columns[3].Event
	if d, err := forever.Expires.Eval(env); err != nil || d != DefaultExpires || forever.OnTimeout != TimeoutPark {
		t.Error(d, err, forever.OnTimeout)
	}
	if names, all := approved.Cells(); all || !cmp.Equal(names, []string{"pause"}) {
		t.Error(names, all)
	}
}

// Without an address to answer at, the notification's text is just without it.
func TestAnswerWithoutAnAddress(t *testing.T) {
	env := &Env{Answer: Answer("k", "", time.Time{})}
	with, err := waitsMap(t).Columns[2].Steps[0].With.Eval(env)
	if want := map[string]any{"domain": " until : k"}; err != nil || cmp.Diff(want, with) != "" {
		t.Error(with, err)
	}
}

func TestSpansThatAreComputed(t *testing.T) {
	for v, want := range map[any]time.Duration{
		"90m": 90 * time.Minute, "2d": 48 * time.Hour, "0s": 0, int64(90): 90 * time.Second, 0.25: 250 * time.Millisecond,
		int64(0): 0, "365d": 365 * 24 * time.Hour, int64(365 * 24 * 3600): 365 * 24 * time.Hour,
	} {
		if d, reason := spanOf(v); d != want || reason != "" {
			t.Errorf("%v: %v %s, want %v", v, d, reason, want)
		}
	}
	for v, want := range map[any]string{
		"soon": "a duration is a number with a unit", "": "a duration", "-1h": "a duration", "366d": "at most 365d", int64(-1): "negative",
		int64(1) << 40: "at most 365d", 1e300: "at most 365d", nil: "not null", true: "not",
	} {
		if _, reason := spanOf(v); !strings.Contains(reason, want) {
			t.Errorf("%v: %q, want %q", v, reason, want)
		}
	}
}

func TestSpanThatCannotBeComputed(t *testing.T) {
	env := &Env{Row: map[string]any{"pause": "soon"}}
	_, err := waitsMap(t).Columns[1].Sleep.Eval(env)
	wantError(t, err, `${row.pause}: "soon": a duration is a number with a unit`)
}

func TestKeysThatNobodyCouldAnswer(t *testing.T) {
	m := parse(t, "version: 1\ncolumns: [{name: a, event: {key: \"${row.k}\"}}]")
	for v, want := range map[any]string{
		nil: "not empty", "": "not empty", strings.Repeat("ä", 251): "502 bytes, at most 500",
	} {
		_, err := m.Columns[0].Event.KeyOf(&Env{Row: map[string]any{"k": v}})
		wantError(t, err, want)
	}
	if key, err := m.Columns[0].Event.KeyOf(&Env{Row: map[string]any{"k": int64(7)}}); err != nil || key != "7" {
		t.Error(key, err)
	}
}
