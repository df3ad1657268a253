package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// interruption is what Ctrl-C does to a run: while its input is read, it ends the program; while rows are at work,
// the first one parks the run and the second one stops at once; a third one does not wait for anything.
type interruption struct {
	ctx    context.Context
	stop   chan struct{}
	cancel context.CancelFunc
	told   func(string)

	mu     sync.Mutex
	atWork bool
	count  int
	at     time.Time // of the last signal that counted
}

// sameSignal is how close a second signal is taken for the first one again: wrappers such as make or a shell pass
// on a Ctrl-C that the terminal has sent to the whole group already.
const sameSignal = 200 * time.Millisecond

func (a *app) interruption() *interruption {
	i := &interruption{stop: make(chan struct{}), told: func(s string) { fmt.Fprintln(a.stderr, s) }}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	go i.listen(a.signals)
	return i
}

func (i *interruption) listen(signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			i.signal()
		case <-i.ctx.Done():
			i.last(signals)
			return
		}
	}
}

// last is for a stop that hangs: whoever asks a third time means it.
func (i *interruption) last(signals <-chan os.Signal) {
	i.mu.Lock()
	hurried := i.count > 0
	i.mu.Unlock()
	if !hurried {
		return
	}
	select {
	case <-signals:
		os.Exit(exitInterrupted)
	case <-time.After(time.Minute):
	}
}

func (i *interruption) signal() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.at) < sameSignal {
		return
	}
	i.count++
	i.at = time.Now()
	switch {
	case i.count > 1 || !i.atWork:
		i.cancel()
	default:
		close(i.stop)
		i.told("sluice: parking: calls under way are brought to their end; press Ctrl-C again to stop at once")
	}
}

// working marks that there is a run to park from now on. What is told goes past the progress display.
func (i *interruption) working(told func(string)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.atWork, i.told = true, told
}

// finishing marks that there is nothing to park any more: a signal ends what is left at once.
func (i *interruption) finishing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.atWork = false
}

func (i *interruption) end() { i.cancel() }
