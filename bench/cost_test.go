package main

import (
	"testing"

	"sluice/internal/cost"
)

func TestCostOfARunIsWorkedOut(t *testing.T) {
	rec, err := costRun(t.Context(), t.TempDir(), 500)
	if err != nil {
		t.Fatal(err)
	}
	u := cost.Used(rec)
	if u.Rows != 500 || u.RunmapRequests < 3 || u.ToolexecRequests < 1500/64 || u.WriteUnits < 1 || u.RunmapMs < 1 {
		t.Errorf("used %+v", u)
	}
	if err := costCommand(t.Context(), []string{"--rows", "0"}); err == nil {
		t.Error("no rows were taken")
	}
}
