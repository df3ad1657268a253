package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
)

// Load is the work that every contender does: Rows rows, Parallel of them at once, each making Calls calls one after
// another, each call answering at once with Bytes bytes. A result must be on disk before its row's next call starts.
type Load struct {
	Rows     int `json:"rows"`
	Parallel int `json:"parallel"`
	Calls    int `json:"calls"`
	Bytes    int `json:"bytes"`
}

func (l Load) total() int { return l.Rows * l.Calls }

// Contender is one way to make calls durable.
type Contender struct {
	Name    string // as printed
	Version string // of the peer's module; empty for what is written here
	Note    string // how the load maps to the peer's own notions

	// Run does the load in dir, an empty folder, and returns the time from handing over the first row to the last row's
	// end, all results durable. Setting up, shutting down and the check of what was stored are outside that time.
	// It fails if a result is missing, altered or there twice, or if a connection does not sync fully.
	Run func(ctx context.Context, dir string, load Load) (time.Duration, error)
}

// boundName is the contender that the others are measured against.
const boundName = "group commit (the bound)"

// contenders are those of the comparison, in the order in which they are printed.
func contenders() []Contender {
	return []Contender{
		sluiceEngine(),
		groupCommit(),
		commitPerCall(),
		dbosTransact(),
		riverSteps(),
		riverChain(),
		goWorkflows(),
	}
}

// callProvider stands for the provider: it answers at once. Contenders call it exactly where a real one would be called.
func callProvider(load Load, row, call int) string { return payload(row, call, load.Bytes) }

// eachRow runs do for every row, Parallel of them at once, and stops at the first error.
func eachRow(ctx context.Context, load Load, do func(ctx context.Context, row int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(load.Parallel)
	for row := range load.Rows {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return do(groupCtx, row) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err() // cancelled before the first row failed
}

// moduleVersion reads a dependency's version from the build, so that no table can show another one than was measured.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return fmt.Sprintf("%s is not in the build", path)
}
