// Package demo knows the table that the demo must end with. It is for the suites beside it.
package demo

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"
)

// CheckTable compares a table of the demo with the one that was worked out without Sluice (examples/expected.csv), row by row.
// Of an error the expected table has the column and the code only.
func CheckTable(t testing.TB, table string) {
	t.Helper()
	expected, err := os.ReadFile("../../examples/expected.csv")
	if err != nil {
		t.Fatal(err)
	}
	got, want := Records(t, table), Records(t, string(expected))
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	wrong := 0
	for i, record := range want {
		last := len(record) - 1
		same := len(got[i]) == len(record) && strings.HasPrefix(got[i][last], record[last]) && (record[last] == "") == (got[i][last] == "")
		for j := 0; same && j < last; j++ {
			same = got[i][j] == record[j]
		}
		if !same && wrong < 5 {
			wrong++
			t.Errorf("line %d:\n got %q\nwant %q", i+1, got[i], record)
		}
	}
}

// Records reads a CSV, its header included.
func Records(t testing.TB, table string) [][]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
