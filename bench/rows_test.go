package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRowsRunOnBothStores(t *testing.T) {
	for _, store := range []string{"memory", "sqlite"} {
		for load, calls := range map[string]float64{oneCall: 1, threeCalls: 3, billed: 3} {
			s, err := rowsRun(t.Context(), t.TempDir(), store, load, 500)
			if err != nil {
				t.Fatal(err)
			}
			if s.Rows != 500 || s.Work <= 0 || s.All < s.Work || s.WriteUnits <= 0 || s.WriteUnits > 20*calls || s.InputUnits <= 0 {
				t.Errorf("%s, %s: %+v", store, load, s)
			}
		}
	}
	if _, err := rowsRun(t.Context(), t.TempDir(), "paper", oneCall, 1); err == nil {
		t.Error("an unknown store was taken")
	}
}

func TestResultsHave300BytesOfJSON(t *testing.T) {
	a, b := resultOf("https://p.example/x?q=1"), resultOf("https://p.example/x?q=2")
	if len(a) != 300 || len(b) != 300 || a == b || !json.Valid([]byte(a)) {
		t.Errorf("%d and %d bytes:\n%s\n%s", len(a), len(b), a, b)
	}
}

func TestRowsOptionsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"--rows", "1"}, {"--short", "-1"}, {"extra"}, {"--child", "paper/none", "--dir", t.TempDir()}} {
		if err := rowsCommand(t.Context(), args); err == nil {
			t.Errorf("%s was taken", strings.Join(args, " "))
		}
	}
}
