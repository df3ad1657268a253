package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is the comparison as it is written with --json.
type Report struct {
	Version      int     `json:"version"`
	Go           string  `json:"go"`
	CPUs         int     `json:"cpus"`
	SQLiteDriver string  `json:"sqliteDriver"`
	SyncMicros   float64 `json:"syncMicros"` // a 4 KB append with a sync, median
	Bound        string  `json:"bound"`
	Scores       []Score `json:"scores"`
}

func newReport(scores []Score, sync time.Duration) Report {
	for i := range scores {
		scores[i].Median = median(scores[i].Rates)
		if bound := find(scores, boundName); bound != nil {
			scores[i].OfBound = ratio(scores[i], *bound)
		}
		if sluice := find(scores, sluiceName); sluice != nil {
			scores[i].SluiceIs = ratio(*sluice, scores[i])
		}
	}
	return Report{
		Version: 1, Go: runtime.Version(), CPUs: runtime.NumCPU(),
		SQLiteDriver: "modernc.org/sqlite " + moduleVersion("modernc.org/sqlite"),
		SyncMicros:   float64(sync) / float64(time.Microsecond),
		Bound:        boundName, Scores: scores,
	}
}

func find(scores []Score, name string) *Score {
	for i := range scores {
		if scores[i].Name == name {
			return &scores[i]
		}
	}
	return nil
}

// print writes the table.
func (r Report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d CPUs, %s; 4 KB append + sync: %.0f µs\n\n", r.Go, r.CPUs, r.SQLiteDriver, r.SyncMicros)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "contender\tversion\tcalls/s\tlowest\thighest\tof the bound\tSluice is\trows per run\t")
	for _, s := range r.Scores {
		fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.3f\t%s\t%d\t\n",
			s.Name, s.Version, s.Median, slices.Min(s.Rates), slices.Max(s.Rates), s.OfBound, times(s.SluiceIs), s.Load.Rows)
	}
	table.Flush()
	fmt.Fprintln(w)
	for _, s := range r.Scores {
		fmt.Fprintf(w, "%s: %s\n", s.Name, s.Note)
	}
}

// times says how many times as fast Sluice is, if it was measured.
func times(factor float64) string {
	if factor == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g×", factor)
}

// ratio is the median over the rounds of how many times as fast a is as b: within a round, so that a slow minute of the
// machine cancels out.
func ratio(a, b Score) float64 {
	var each []float64
	for round := range min(len(a.Rates), len(b.Rates)) {
		each = append(each, a.Rates[round]/b.Rates[round])
	}
	return median(each)
}

func (r Report) save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
