package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/internal/core/call"
)

// claimMargin is what a claim lasts longer than its call should take.
const claimMargin = 10 * time.Second

// claim is a call's right to be made, towards other runs that want the same. It is taken when the call's turn has come,
// and not before: whoever waits for a turn blocks nobody, and pays for no claim that it must give up again.
type claim struct {
	c     *caller
	q     query
	lasts time.Duration
	look  call.Lookup // what was found last
	taken bool
	stop  func() // ends the renewing
}

// look finds a result that exists already, or who is making the call. The claim is still to be taken. A row that comes
// back after its provider's hold has looked before, and leaves it to the claim to find out: each look is billed.
func (c *caller) look(ctx context.Context, q query) (*claim, error) {
	k := &claim{c: c, q: q, lasts: q.tool.Timeout + c.budget.Limit + claimMargin}
	if t := q.task; t.Scope != "" && !t.heldAt.Equal(t.looked) {
		t.looked = t.heldAt
		return k, nil
	}
	var err error
	if k.look, err = c.receipts.Look(ctx, q.tool.Name, q.digest, c.run, c.since); err != nil {
		return nil, fmt.Errorf("claim of %s: %w", q.id, err)
	}
	return k, nil
}

// take makes the call this run's. If that cannot be, it returns the answer that the call has without being made.
func (k *claim) take(ctx context.Context) (answer *reply) {
	if k == nil || k.taken {
		return nil
	}
	var err error
	k.look, err = k.c.receipts.Claim(ctx, k.q.tool.Name, k.q.digest, k.c.run, time.Now().Add(k.lasts), k.c.since, k.look)
	if err != nil {
		return &reply{err: fmt.Errorf("claim of %s: %w", k.q.id, err)}
	}
	if a, ok := k.found(); ok {
		return &reply{Answer: a}
	}
	k.taken, k.stop = true, k.renew()
	return nil
}

// found is the answer of a call that was made, or is being made.
func (k *claim) found() (call.Answer, bool) {
	switch {
	case k.look.Hit && k.look.Run == k.c.run:
		k.c.stats.reused.Add(1)
		return call.Answer{Outcome: call.Result, Value: k.look.Value}, true
	case k.look.Hit:
		k.c.stats.cached.Add(1)
		return call.Answer{Outcome: call.Result, Value: k.look.Value}, true
	case !k.look.Busy.IsZero():
		return call.Answer{Outcome: call.Held, Until: k.look.Busy, Why: call.Why{Reason: call.Identical}}, true
	}
	return call.Answer{}, false
}

// end keeps the result in place of the claim, or gives the claim up, so that whoever comes back first makes the call
// (H10).
func (k *claim) end(ctx context.Context, a call.Answer, err error) error {
	if !k.taken {
		return err
	}
	k.stop()
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	tool, r := k.q.tool, k.c.receipts
	if err == nil && (a.Outcome == call.Result || a.Outcome == call.Missing) {
		return r.Settle(durable, tool.Name, k.q.digest, k.look, k.c.run, valueOf(a), tool.Cache)
	}
	if release := r.Release(durable, tool.Name, k.q.digest, k.look); release != nil && err == nil {
		err = fmt.Errorf("claim of %s could not be released: %w", k.q.id, release)
	}
	return err
}

// renew keeps the claim while its call is under way: where it ran out, another run would pay for the same call. It is the
// caller's again when the function that it returns has returned.
func (k *claim) renew() func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(k.lasts / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), durableWrite)
			err := k.c.receipts.Renew(ctx, k.q.tool.Name, k.q.digest, &k.look, k.c.run, time.Now().Add(k.lasts))
			cancel()
			if err != nil {
				return // it runs out, or has: the call is made all the same, and its result serves
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// claimed takes the claims of the units' calls, side by side, and answers those that need not be made. It returns the
// units that have others.
func (l *lane) claimed(ctx context.Context, units []*unit) []*unit {
	answers := map[*turn]*reply{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, u := range units {
		for _, t := range u.turns {
			if t.claim == nil || t.claim.taken {
				continue
			}
			wg.Go(func() {
				if r := t.claim.take(ctx); r != nil {
					mu.Lock()
					defer mu.Unlock()
					answers[t] = r
				}
			})
		}
	}
	wg.Wait()
	if len(answers) == 0 {
		return units
	}
	return slices.DeleteFunc(units, func(u *unit) bool {
		u.turns = slices.DeleteFunc(u.turns, func(t *turn) bool {
			if answers[t] == nil {
				return false
			}
			l.reply(t, *answers[t])
			return true
		})
		if len(u.turns) == 0 {
			l.unsent(u)
		}
		return len(u.turns) == 0
	})
}
