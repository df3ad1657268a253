package gateway

import (
	"runtime"
	"sync"
)

// workers runs jobs at once, each on a goroutine of its own while it lasts, and uses the goroutines again: a fresh one
// would grow its stack anew for every body that it decodes, which for fast tools costs more than all the rest.
type workers struct {
	work chan func()
	wg   sync.WaitGroup
}

func newWorkers() *workers { return &workers{work: make(chan func())} }

// do runs f without waiting for it.
func (w *workers) do(f func()) {
	select {
	case w.work <- f:
		return
	default:
	}
	runtime.Gosched() // a job that does not wait for a network may end meanwhile
	select {
	case w.work <- f:
		return
	default:
	}
	w.wg.Go(func() {
		f()
		for f := range w.work {
			f()
		}
	})
}

// wait returns when all jobs are done. Nothing can be done after it.
func (w *workers) wait() {
	close(w.work)
	w.wg.Wait()
}
