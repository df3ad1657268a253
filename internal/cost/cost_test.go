package cost

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// Worked out by hand from the price lists:
//
//	transitions   4,000 at 0.025 per 1,000                            0.10
//	requests      1,500,000 + 500,000 at 0.20 per million             0.40
//	runmap busy   (10,000,000 - 2,500,000) ms at 2 GB = 15,000 GB-s   0.200001
//	runmap wait   2,500,000 ms at 2 GB = 5,000 GB-s                   0.066667
//	toolexec      4,000,000 ms at 0.5 GB = 2,000 GB-s                 0.0266668
//	writes        2,000,000 at 0.625 per million                      1.25
//	reads         8,000,000 at 0.125 per million                      1.00
//	PUT           3,000 at 0.005 per 1,000                            0.015
//	GET           50,000 at 0.0004 per 1,000                          0.02
func TestBillOfEveryKindOfUse(t *testing.T) {
	b := Of(Usage{
		Rows: 500_000, Transitions: 4_000, RunmapRequests: 1_500_000, ToolexecRequests: 500_000,
		RunmapMs: 10_000_000, ResidentWaitMs: 2_500_000, ToolexecMs: 4_000_000, RunmapMB: 2048, ToolexecMB: 512,
		WriteUnits: 2_000_000, ReadUnits: 8_000_000, Puts: 3_000, Gets: 50_000,
	})
	want := []Line{
		{Transitions, 4_000, "", 0.10},
		{Requests, 2_000_000, "", 0.40},
		{RunmapBusy, 15_000, "GB-s", 0.200001},
		{RunmapWait, 5_000, "GB-s", 0.066667},
		{ToolexecBusy, 2_000, "GB-s", 0.0266668},
		{Writes, 2_000_000, "units", 1.25},
		{Reads, 8_000_000, "units", 1.00},
		{Puts, 3_000, "", 0.015},
		{Gets, 50_000, "", 0.02},
	}
	if len(b.Lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(b.Lines), len(want))
	}
	for i, w := range want {
		if got := b.Lines[i]; got.Name != w.Name || got.Unit != w.Unit || !near(got.Quantity, w.Quantity) || !near(got.Dollars, w.Dollars) {
			t.Errorf("line %d is %+v, want %+v", i, got, w)
		}
	}
	if !near(b.Total, 3.0783348) || !near(b.PerMillion, 6.1566696) {
		t.Errorf("total %v, per million rows %v", b.Total, b.PerMillion)
	}
}

func TestBillOfNothing(t *testing.T) {
	if b := Of(Usage{WriteUnits: 8}); !near(b.Total, 0.000005) || b.PerMillion != 0 {
		t.Errorf("without rows: %+v", b)
	}
}

// A wait that ends with its slice may be measured a millisecond longer than it.
func TestWaitIsNeverMoreThanItsSlices(t *testing.T) {
	b := Of(Usage{Rows: 1, RunmapMs: 1000, ResidentWaitMs: 1001, RunmapMB: 1024})
	if busy, wait := b.Lines[2], b.Lines[3]; busy.Quantity != 0 || wait.Quantity != 1 {
		t.Errorf("busy %v, waiting %v", busy.Quantity, wait.Quantity)
	}
}

// Counted by hand along the machines: one shard, slice, park, slice, done is
// start Plan Shards Shard [start Slice Outcome Park Slice Outcome Done end] Finish Ended Done end.
func TestStateTransitions(t *testing.T) {
	for _, tc := range []struct{ shards, slices, parks, awaits, want int64 }{
		{1, 1, 0, 0, 13},
		{1, 2, 1, 0, 16},
		{1, 2, 1, 1, 17},                     // Await and AwaitHour instead of Park
		{0, 0, 0, 0, 7},                      // a run without rows
		{40, 100, 60, 0, 7 + 160 + 200 + 60}, // side by side
		{1, 1300, 1299, 0, 11 + 2600 + 1299}, // the last slice before a rollover is done
		{1, 1301, 1300, 0, 11 + 2602 + 1300 + 4},
	} {
		if got := StateTransitions(tc.shards, tc.slices, tc.parks, tc.awaits); got != tc.want {
			t.Errorf("%d shards, %d slices, %d parks: %d, want %d", tc.shards, tc.slices, tc.parks, got, tc.want)
		}
	}
}

// The formula speaks of these states, on the way of a run in which nothing goes wrong.
func TestFormulaFollowsTheMachines(t *testing.T) {
	for file, ways := range map[string]map[string]string{
		"run.asl.json":   {"Plan": "Shards", "Shards": "Finish", "Finish": "Ended", "Rest": "Finish", "Done": ""},
		"shard.asl.json": {"Slice": "Outcome", "Park": "Slice", "AwaitHour": "Slice", "Rollover": "Done", "Done": ""},
	} {
		raw, err := os.ReadFile("../../statemachine/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			States map[string]struct{ Next string }
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		for name, next := range ways {
			if s, ok := m.States[name]; !ok || s.Next != next {
				t.Errorf("%s: after %s comes %q, the formula counts %q", file, name, s.Next, next)
			}
		}
	}
}

func TestUsedReadsTheRecord(t *testing.T) {
	r := &sheet.Run{
		Shards: 2, PlanMs: 300, FinishMs: 200,
		Stats: sheet.Stats{Slices: 5, Parks: 3, SliceMs: 10_000, ResidentWaitMs: 4_000, ToolBatches: 70, ToolMs: 9_000},
		Usage: table.Usage{WriteUnits: 10, ReadUnits: 20}, SliceUsage: table.Usage{WriteUnits: 100, ReadUnits: 200},
	}
	r.Sealed.Rows = 1000
	want := Usage{
		Rows: 1000, Transitions: 28, RunmapRequests: 7, ToolexecRequests: 70, RunmapMs: 10_500, ResidentWaitMs: 4_000,
		ToolexecMs: 9_000, RunmapMB: 512, ToolexecMB: 512, WriteUnits: 110, ReadUnits: 220, Puts: 2, Gets: 2,
	}
	if got := Used(r); got != want {
		t.Errorf("used\n%+v, want\n%+v", got, want)
	}
	r.Stats.SliceMB, r.Stats.ToolMB = 768, 256 // of a deployment that was told otherwise
	want.RunmapMB, want.ToolexecMB = 768, 256
	if got := Used(r); got != want {
		t.Errorf("used\n%+v, want\n%+v", got, want)
	}
}
