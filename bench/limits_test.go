package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLimitsBoundIsThatOfABurstyClient(t *testing.T) {
	for _, tt := range []struct {
		limitCase
		want time.Duration
	}{
		{limitCase{Rate: 50, Per: time.Second, Calls: 3000}, 59 * time.Second}, // 50 at 0 s, 50 at 1 s, ..., 50 at 59 s
		{limitCase{Rate: 600, Per: time.Minute, Calls: 1200}, time.Minute},
		{limitCase{Rate: 600, Per: time.Minute, Calls: 1201}, 2 * time.Minute},
		{limitCase{Rate: 600, Per: time.Minute, Calls: 600}, 0},
	} {
		if got := tt.bound(); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.limitCase, got, tt.want)
		}
	}
}

func TestLimitsAreMeasuredOverHTTP(t *testing.T) {
	c := limitCase{Rate: 100, Per: time.Second, Calls: 120, Nominal: 1200 * time.Millisecond}
	score, err := c.measure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if score.Makespan < c.bound() || score.Fullest < 1 || score.Parks != 0 {
		t.Errorf("%+v", score)
	}
	var out bytes.Buffer
	printLimits(&out, []limitScore{score})
	if !strings.Contains(out.String(), "100 per 1s") {
		t.Error(out.String())
	}
}
