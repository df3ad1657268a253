// Command bench measures Sluice: against its peers on the same machine, in the same process, on the same file system;
// and against the bounds that providers and storage set.
//
//	go run . durable            durable calls: every result on disk before the next call of its row
//	go run . limits             how much of a provider's limit is used, against the bound that the limit sets
//	go run . rows               rows per second, memory and what is written, on both stores
//	go run . cost               what a run would cost on AWS, per million rows
//	go run . durable --help     options of a command
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to measure: go run . durable, limits, rows or cost")
	}
	switch args[0] {
	case "durable":
		return durableCommand(ctx, args[1:])
	case "limits":
		return limitsCommand(ctx, args[1:])
	case "rows":
		return rowsCommand(ctx, args[1:])
	case "cost":
		return costCommand(ctx, args[1:])
	default:
		return fmt.Errorf("unknown command %q; there are: durable, limits, rows and cost", args[0])
	}
}
