package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/providersim"
)

// hiddenCase is a provider's limit that its catalogue does not declare, and calls that have to pass through it.
type hiddenCase struct {
	Name        string
	Rate        int           // per second; 0: none
	Concurrency int           // at once; 0: none
	Latency     time.Duration // of an answer
	Calls       int
}

var (
	hiddenCases = []hiddenCase{
		{"12 at once, answers take 3 s", 0, 12, 3 * time.Second, 800},
		{"2 per second, answers take 20 ms", 2, 0, 20 * time.Millisecond, 300},
		{"3 per second, answers take 1 s", 3, 0, time.Second, 450},
	}
	shortHidden = []hiddenCase{{"2 at once, answers take 1 s", 0, 2, time.Second, 60}}
)

// bound is how many calls per second any client can have answered: by the limit, by the time that answers take, and by
// the default pace, which is kept.
func (c hiddenCase) bound() float64 {
	every := pacer.Rule{Rate: mapspec.DefaultRate, Per: mapspec.DefaultPer}.Window().Seconds() / mapspec.DefaultRate
	bound := 1 / every
	if c.Rate > 0 {
		bound = min(bound, float64(c.Rate))
	}
	if c.Concurrency > 0 {
		bound = min(bound, float64(c.Concurrency)/c.Latency.Seconds())
	}
	return bound
}

// hiddenScore is what became of a case, from the first call to the last: finding the limit is part of it.
type hiddenScore struct {
	hiddenCase
	PerSecond float64
	Refused   int
	Requests  int
}

func (c hiddenCase) measure(ctx context.Context, dir string) (hiddenScore, error) {
	p := providersim.Provider{Concurrency: c.Concurrency, Slow: 1000, SlowBy: providersim.Duration(c.Latency)}
	if c.Rate > 0 {
		p.Limits = []providersim.Limit{{Rate: c.Rate, Per: providersim.Duration(time.Second)}}
	}
	seen, _, err := drive(ctx, dir, p, "", c.Calls)
	if err != nil {
		return hiddenScore{}, err
	}
	took := seen.Last.Sub(seen.First)
	score := hiddenScore{hiddenCase: c, PerSecond: float64(c.Calls-1) / took.Seconds(), Requests: seen.Received}
	for _, n := range seen.Refused429 {
		score.Refused += n
	}
	return score, nil
}

// hiddenLimits is `go run . limits --hidden`.
func hiddenLimits(ctx context.Context, dir string, short bool) error {
	cases := hiddenCases
	if short {
		cases = shortHidden
	}
	var scores []hiddenScore
	for _, c := range cases {
		fmt.Fprintf(os.Stderr, "%d calls; hidden: %s\n", c.Calls, c.Name)
		score, err := c.measure(ctx, dir)
		if err != nil {
			return err
		}
		scores = append(scores, score)
	}
	printHidden(os.Stdout, scores)
	return nil
}

func printHidden(w io.Writer, scores []hiddenScore) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "hidden limit\tcalls\tper second\tbound\tratio\trefused\tshare\t")
	for _, s := range scores {
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.3f\t%d of %d\t%.1f %%\t\n", s.Name, s.Calls, s.PerSecond, s.bound(), s.PerSecond/s.bound(),
			s.Refused, s.Requests, 100*float64(s.Refused)/float64(s.Requests))
	}
	table.Flush()
}
