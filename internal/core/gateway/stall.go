package gateway

import "time"

const (
	// stallTick is how often a batch looks at the clock while its calls are on their way. A look that comes a tick too
	// late shows that the process stood still.
	stallTick = 10 * time.Millisecond
	// stallWatch is for how long it looks: by then its calls have reached the provider.
	stallWatch = 2 * time.Second
)

// watchForStalls tells the pacer when this process stands still: a call that is on its way then reaches the provider
// late, and the calls that follow it in a window would come too early, though each of them is on time. The caller ends
// the watch.
func (e *Executor) watchForStalls() (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(stallTick)
		defer tick.Stop()
		last := time.Now()
		for until := last.Add(stallWatch); last.Before(until); {
			over := false
			select {
			case <-tick.C:
			case <-stop:
				over = true
			}
			now := time.Now()
			if late := now.Sub(last) - stallTick; late > stallTick {
				e.Pacer.Stalled(late)
			}
			if last = now; over {
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
