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

// options of the comparison.
type options struct {
	harness harness
	only    string // regular expression
	json    string // path
}

// durableCommand is `go run . durable`: measure, print, save.
func durableCommand(ctx context.Context, args []string) error {
	opts, err := parseDurable(args)
	if err != nil {
		return err
	}
	chosen, err := choose(opts.only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(opts.harness.dir, 0o755); err != nil {
		return err
	}
	sync, err := syncTime(opts.harness.dir)
	if err != nil {
		return err
	}
	warn(opts.harness.dir, sync)
	scores, err := opts.harness.measure(ctx, chosen)
	if err != nil {
		return err
	}
	report := newReport(scores, sync)
	report.print(os.Stdout)
	if opts.json != "" {
		return report.save(opts.json)
	}
	return nil
}

func parseDurable(args []string) (options, error) {
	opts := options{harness: harness{log: os.Stderr}}
	h := &opts.harness
	flags := flag.NewFlagSet("durable", flag.ContinueOnError)
	flags.IntVar(&h.rounds, "rounds", 5, "measured rounds; each runs every contender once")
	flags.DurationVar(&h.box, "time", 2*time.Second, "about how long one contender runs per round")
	flags.IntVar(&h.load.Parallel, "parallel", 64, "rows at once")
	flags.IntVar(&h.load.Calls, "calls", 3, "calls per row, one after another")
	flags.IntVar(&h.load.Bytes, "bytes", 300, "bytes per result")
	flags.StringVar(&h.dir, "dir", ".state", "folder for the databases; on a real disk, because syncing memory is free")
	flags.StringVar(&opts.only, "only", "", "run only the contenders whose name matches this regular expression, and the bound")
	flags.StringVar(&opts.json, "json", "", "also write the figures as JSON to this file")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if h.rounds < 1 || h.box <= 0 || h.load.Parallel < 1 || h.load.Calls < 1 || h.load.Bytes < 1 {
		return options{}, errors.New("rounds, time, parallel, calls and bytes must be positive")
	}
	return opts, nil
}

// warn tells what would make the figures worthless.
func warn(dir string, sync time.Duration) {
	if sync < 20*time.Microsecond {
		fmt.Fprintf(os.Stderr, "warning: a sync in %s takes %s; that is memory, not a disk: choose another --dir\n", dir, sync)
	}
	if load, known := otherLoad(); known && load > 1 {
		fmt.Fprintf(os.Stderr, "warning: the machine was busy in the last minute (load average %.1f); "+
			"if it still is, the figures will be low and the ratios rough\n", load)
	}
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
