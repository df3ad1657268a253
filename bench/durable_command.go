package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

// durableCommand reads the options of `go run . durable`, measures, prints and saves.
func durableCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("durable", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "measured rounds; each runs every contender once")
	seconds := flags.Float64("seconds", 2, "about how many seconds one contender runs per round")
	parallel := flags.Int("parallel", 64, "rows at once")
	calls := flags.Int("calls", 3, "calls per row, one after another")
	size := flags.Int("bytes", 300, "bytes per result")
	only := flags.String("only", "", "run only contenders whose name matches this regular expression, and the bound")
	dir := flags.String("dir", ".state", "folder for the databases; on a real disk, because syncing memory is free")
	jsonPath := flags.String("json", "", "also write the figures as JSON to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *rounds < 1 || *seconds <= 0 || *parallel < 1 || *calls < 1 || *size < 1 {
		return errors.New("rounds, seconds, parallel, calls and bytes must be positive")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	sync, err := syncTime(*dir)
	if err != nil {
		return err
	}
	if sync < 20*time.Microsecond {
		fmt.Fprintf(os.Stderr, "warning: a sync in %s takes %s; that is memory, not a disk: choose another --dir\n", *dir, sync)
	}
	h := harness{
		dir: *dir, load: Load{Parallel: *parallel, Calls: *calls, Bytes: *size}, rounds: *rounds,
		seconds: time.Duration(*seconds * float64(time.Second)), log: os.Stderr,
	}
	scores, err := h.measure(ctx, chosen)
	if err != nil {
		return err
	}
	report := newReport(scores, sync)
	report.print(os.Stdout)
	if *jsonPath != "" {
		return report.save(*jsonPath)
	}
	return nil
}

// choose keeps the bound whatever is asked for: without it there is nothing to compare with.
func choose(only string) ([]Contender, error) {
	pattern, err := regexp.Compile("(?i)" + only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	var chosen []Contender
	for _, c := range contenders() {
		if c.Name == boundName || pattern.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}
