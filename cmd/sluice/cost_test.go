package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"sluice/internal/cost"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestBillForPeople(t *testing.T) {
	e := entry{report: report{ID: "demo", Status: "completed"}, Name: "leads\x1b[31m"}
	b := cost.Of(cost.Usage{
		Rows: 250_000, Transitions: 26, RunmapRequests: 7, ToolexecRequests: 12_000, RunmapMs: 75_250, ResidentWaitMs: 2_618,
		ToolexecMs: 70_000, RunmapMB: 1024, ToolexecMB: 512, WriteUnits: 260_000, ReadUnits: 40_000, Puts: 2, Gets: 2,
	})
	b.Note = cost.LaptopNote
	e.Bill = &b
	var out strings.Builder
	if err := writeBill(&out, e); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/bill.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

func TestCostOfARun(t *testing.T) {
	b := newBench(t)
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1").want(t, exitOK)
	b.sluice("runs", "r1", "--cost").want(t, exitOK, "run r1 (upper): completed, 2 rows", cost.LaptopNote, "state transitions", "per million rows")
	bill := b.sluice("runs", "r1", "--cost", "--json").json(t)["bill"].(map[string]any)
	used := map[string]float64{}
	sum := 0.0
	for _, l := range bill["lines"].([]any) {
		line := l.(map[string]any)
		used[line["name"].(string)] = line["quantity"].(float64)
		sum += line["dollars"].(float64)
	}
	// One shard and one slice make 13 transitions. Plan, slice, finish; the two calls went in one batch or in two.
	if used[cost.Transitions] != 13 || used[cost.Requests] < 4 || used[cost.Requests] > 5 {
		t.Errorf("used %v", used)
	}
	for _, name := range []string{cost.RunmapBusy, cost.Writes, cost.Reads} {
		if used[name] <= 0 {
			t.Errorf("nothing used of %s: %v", name, used)
		}
	}
	total := bill["total"].(float64)
	if diff := total - sum; total <= 0 || diff > 1e-12 || diff < -1e-12 || bill["note"] != cost.LaptopNote {
		t.Errorf("total %v of lines that sum up to %v, note %v", total, sum, bill["note"])
	}
	if plain := b.sluice("runs", "r1", "--json").json(t); plain["bill"] != nil {
		t.Error("a bill that nobody asked for")
	}
	b.sluice("runs", "--cost").want(t, exitUsage, "--cost is for one run")
}
