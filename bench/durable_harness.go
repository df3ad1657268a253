package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// harness measures contenders in turns: one round runs each of them once, so that what the machine does meanwhile falls
// on all of them alike.
type harness struct {
	dir    string        // where the databases go; must be a real disk
	load   Load          // Rows is set per contender
	rounds int           // measured rounds
	box    time.Duration // about how long one contender runs per round
	log    io.Writer     // progress, one line per run
}

// Score is what a contender did over all rounds.
type Score struct {
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"`
	Note    string    `json:"note"`
	Load    Load      `json:"load"`
	Rates   []float64 `json:"callsPerSecond"` // per round
	Median  float64   `json:"median"`         // of Rates
	// Medians of the ratios within each round:
	OfBound  float64 `json:"ofBound"`            // to the bound
	SluiceIs float64 `json:"sluiceIs,omitempty"` // how many times as fast Sluice is
}

// measure finds each contender's row count, which also warms it up, and then runs the rounds.
func (h harness) measure(ctx context.Context, all []Contender) ([]Score, error) {
	scores := make([]Score, len(all))
	for i, c := range all {
		load, err := h.calibrate(ctx, c)
		if err != nil {
			return nil, err
		}
		scores[i] = Score{Name: c.Name, Version: c.Version, Note: c.Note, Load: load}
	}
	for round := range h.rounds {
		for turn := range all {
			i := (turn + round) % len(all) // nobody is always the first, or always after the same one
			took, err := h.run(ctx, all[i], scores[i].Load)
			if err != nil {
				return nil, err
			}
			rate := float64(scores[i].Load.total()) / took.Seconds()
			scores[i].Rates = append(scores[i].Rates, rate)
			fmt.Fprintf(h.log, "round %d/%d  %-26s %9.0f calls/s\n", round+1, h.rounds, all[i].Name, rate)
		}
	}
	return scores, nil
}

// calibrate raises the number of rows until a run takes a good part of the time box, and sizes the rounds from that. The
// faster of two runs counts: a stall of the machine must not make the rounds too short to measure anything.
func (h harness) calibrate(ctx context.Context, c Contender) (Load, error) {
	load := h.load
	for load.Rows = h.load.Parallel; ; load.Rows *= 4 {
		took, err := h.run(ctx, c, load)
		if err != nil {
			return load, err
		}
		again, err := h.run(ctx, c, load)
		if err != nil {
			return load, err
		}
		if took = min(took, again); took >= h.box/4 {
			batches := math.Round(float64(load.Rows) / float64(h.load.Parallel) * h.box.Seconds() / took.Seconds())
			load.Rows = h.load.Parallel * max(1, int(batches))
			return load, nil
		}
	}
}

// run gives the contender an empty folder and a collected heap.
func (h harness) run(ctx context.Context, c Contender, load Load) (time.Duration, error) {
	dir, err := os.MkdirTemp(h.dir, "run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	runtime.GC()
	took, err := c.Run(ctx, dir, load)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Name, err)
	}
	return took, nil
}

// syncTime is the median time of an append of 4 KB with a sync: what a commit costs at least on this disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	var times []float64
	for range 200 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(start)))
	}
	return time.Duration(median(times)), nil
}

// otherLoad is the machine's load average over the last minute, where there is one to read: figures taken beside other
// work are worth little.
func otherLoad() (float64, bool) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	var load float64
	_, err = fmt.Sscan(string(data), &load)
	return load, err == nil
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
