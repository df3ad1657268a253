// Command sluice runs row maps on this machine: it fills the columns of a table by calling rate-limited APIs, and
// survives their refusals, crashes and restarts.
package main

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// collectLess is the GOGC of this command. What is alive at any time is some ten megabytes, however many rows there
// are; letting it grow to a few times that before a collection saves a fifth of the processor's time.
const collectLess = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectLess)
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, signals: signals, getenv: os.Getenv}
	os.Exit(a.run(os.Args[1:]))
}
