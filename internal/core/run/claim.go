package run

import (
	"context"
	"time"

	"sluice/internal/core/call"
)

// claimMargin is what a claim lasts longer than its call should take.
const claimMargin = 10 * time.Second

// claimLasts is how long the claim of a call is made for: for the call, and for twice the time that those before it in
// the queue take if nobody else asks the provider.
func (c *caller) claimLasts(q query) time.Duration {
	lasts := q.tool.Timeout + c.budget.Limit + claimMargin
	if l := c.lanes[q.tool.Provider.Name]; l != nil {
		lasts += 2 * l.queueTime()
	}
	return lasts
}

// queueTime is how long the calls that wait here take under the provider's limits.
func (l *lane) queueTime() time.Duration {
	l.mu.Lock()
	waiting := len(l.queue)
	l.mu.Unlock()
	var longest time.Duration
	for _, limit := range l.provider.Limits {
		longest = max(longest, time.Duration(waiting)*limit.Per/time.Duration(max(limit.Rate, 1)))
	}
	return longest
}

// renew keeps a claim while its call is under way, however long it waits for its turn: where the claim ran out, another
// run would pay for the same call. The claim is the caller's again when the function that it returns has returned.
func (c *caller) renew(q query, look *call.Lookup, lasts time.Duration) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(lasts / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), durableWrite)
			err := c.receipts.Renew(ctx, q.tool.Name, q.digest, look, c.run, time.Now().Add(lasts))
			cancel()
			if err != nil {
				return // it runs out, or has: the call is made all the same, and its result serves
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
