// Command sluice runs row maps on this machine: it fills the columns of a table by calling rate-limited APIs, and
// survives their refusals, crashes and restarts.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, signals: signals}
	os.Exit(a.run(os.Args[1:]))
}
