package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestHiddenBoundIsTheTightest(t *testing.T) {
	for _, tt := range []struct {
		hiddenCase
		want float64
	}{
		{hiddenCase{Concurrency: 12, Latency: 3 * time.Second}, 4},
		{hiddenCase{Rate: 2, Latency: time.Second}, 2},
		{hiddenCase{Rate: 3, Concurrency: 1, Latency: time.Second}, 1},
		{hiddenCase{Rate: 100, Latency: time.Second}, 5 / 1.03}, // the default pace, with its slack
	} {
		if got := tt.bound(); got < tt.want*0.9999 || got > tt.want*1.0001 {
			t.Errorf("%+v: %v, want %v", tt.hiddenCase, got, tt.want)
		}
	}
}

func TestHiddenLimitsAreMeasuredOverHTTP(t *testing.T) {
	score, err := hiddenCase{Name: "one at a time", Concurrency: 1, Latency: 200 * time.Millisecond, Calls: 12}.measure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if score.PerSecond <= 0 || score.Requests != 12+score.Refused {
		t.Errorf("%+v", score)
	}
	var out bytes.Buffer
	printHidden(&out, []hiddenScore{score})
	if !strings.Contains(out.String(), "one at a time") {
		t.Error(out.String())
	}
}
