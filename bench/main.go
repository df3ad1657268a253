// Command bench compares Sluice with its peers on the same machine, in the same process, on the same file system.
//
//	go run . durable            durable calls: every result on disk before the next call of its row
//	go run . durable --help     its options
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
		return errors.New("say what to compare: go run . durable")
	}
	switch args[0] {
	case "durable":
		return durableCommand(ctx, args[1:])
	default:
		return fmt.Errorf("unknown comparison %q; there is: durable", args[0])
	}
}
