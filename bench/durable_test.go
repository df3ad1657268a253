package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every contender runs a small load; its own check fails on a lost, altered or doubled result and on a connection that
// does not sync fully.
func TestEveryContenderKeepsEveryResult(t *testing.T) {
	for _, c := range contenders() {
		t.Run(c.Name, func(t *testing.T) {
			took, err := c.Run(t.Context(), t.TempDir(), Load{Rows: 64, Parallel: 64, Calls: 3, Bytes: 300})
			if err != nil {
				t.Fatal(err)
			}
			if took <= 0 {
				t.Fatalf("took %s", took)
			}
		})
	}
}

func TestPayloadHasTheAskedSizeAndNamesItsCall(t *testing.T) {
	got := payload(12, 2, 300)
	if len(got) != 300 || !strings.HasPrefix(got, "r12c2:abc") {
		t.Fatalf("%d bytes: %q", len(got), got)
	}
}

func TestTallyFindsLostAlteredDoubledAndForeignResults(t *testing.T) {
	load := Load{Rows: 2, Calls: 1, Bytes: 20}
	first, second := "r0c0:abcdefghijklmno", "r1c0:abcdefghijklmno"
	for _, tc := range []struct {
		name   string
		stored []string
		want   string
	}{
		{"complete", []string{second, first}, ""},
		{"lost", []string{first}, "1 of 2 results are missing, the first of them row 1, call 0"},
		{"cut", []string{first, second[:19]}, "row 1, call 0: stored 19 bytes"},
		{"altered", []string{first, "r1c0:abcdefghijklmnX"}, "differ from the provider's"},
		{"doubled", []string{first, first}, "row 0, call 0: stored twice"},
		{"never asked", []string{"r2c0:abcdefghijklmno"}, "never asked for"},
		{"foreign", []string{"null"}, "not one of the provider's answers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tally := newTally(load)
			var err error
			for _, s := range tc.stored {
				err = errors.Join(err, tally.add(s))
			}
			err = errors.Join(err, tally.complete())
			if tc.want == "" && err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAConnectionThatDoesNotSyncFullyIsFound(t *testing.T) {
	db, err := openSQLite(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	good, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	good.Close()
	if _, err := bad.ExecContext(t.Context(), "PRAGMA synchronous = NORMAL"); err != nil {
		t.Fatal(err)
	}
	bad.Close()
	if err := mustSyncFully(t.Context(), db); err == nil || !strings.Contains(err.Error(), "synchronous=1") {
		t.Fatalf("one of two connections has synchronous=NORMAL, got %v", err)
	}
}

// The harness gives each contender as many rows as fill its time box, runs rounds in turns, each round beginning with
// another contender, and leaves nothing behind.
func TestHarnessSizesAndAlternates(t *testing.T) {
	dir := t.TempDir()
	var order []string
	fake := func(name string, perRow time.Duration) Contender {
		return Contender{Name: name, Run: func(_ context.Context, _ string, load Load) (time.Duration, error) {
			order = append(order, name)
			return time.Duration(load.Rows) * perRow, nil
		}}
	}
	h := harness{dir: dir, load: Load{Parallel: 64, Calls: 3, Bytes: 300}, rounds: 2, box: 2 * time.Second, log: io.Discard}
	scores, err := h.measure(t.Context(), []Contender{fake("fast", time.Millisecond), fake("slow", 100*time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	// fast: 64 rows take 64 ms, 256 take 256 ms, 1024 take more than half a second; 31.25 batches of 64 fill 2 s.
	if scores[0].Load.Rows != 31*64 || scores[1].Load.Rows != 64 {
		t.Fatalf("rows %d and %d", scores[0].Load.Rows, scores[1].Load.Rows)
	}
	order = order[6+2:] // three sizes and one, twice each
	if want := []string{"fast", "slow", "slow", "fast"}; !slices.Equal(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
	if got := scores[1].Rates[1]; math.Abs(got-30) > 1e-9 { // 3 calls in 100 ms
		t.Fatalf("rate %v, want 30", got)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestReportRatiosAreTakenWithinARound(t *testing.T) {
	report := newReport([]Score{
		{Name: boundName, Rates: []float64{1000, 100, 1000}},
		{Name: "peer", Rates: []float64{500, 50, 400}},
		{Name: sluiceName, Rates: []float64{1000, 200, 1200}},
	}, 100*time.Microsecond)
	if got := report.Scores[1]; got.OfBound != 0.5 || got.Median != 400 || got.SluiceIs != 3 {
		t.Fatalf("of the bound %v, median %v, Sluice is %v times as fast; want 0.5, 400 and 3", got.OfBound, got.Median, got.SluiceIs)
	}
}

func TestTheBoundIsAlwaysChosen(t *testing.T) {
	chosen, err := choose("dbos")
	if err != nil || len(chosen) != 2 || chosen[0].Name != boundName || chosen[1].Name != "DBOS" {
		t.Fatalf("%v, %v", chosen, err)
	}
}

func TestUnknownCommandsAndOptionsAreRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"durable", "--rounds", "0"}, {"durable", "extra"}, {"durable", "--only", "("}} {
		if err := command(t.Context(), args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
