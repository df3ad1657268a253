package run

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

const (
	// setAside is how many calls more than it needs a slice takes from the budget at once, so that one write serves many; at
	// most a twentieth of what is left.
	setAside    = 256
	partOfRest  = 20
	othersPause = 2 * time.Second        // how long a slice waits for what others may give back, before the run pauses
	affordAgain = 200 * time.Millisecond // and how often it looks meanwhile
)

// allowance is what a slice may spend of the run's budget. What a request may cost is set aside, durably, before it is
// dispatched; so a budget is never exceeded, by slices side by side or after a crash. What was set aside and not spent is
// given back when the slice ends. Of a slice that died only what it may have had under way stays spent.
type allowance struct {
	st      *store.Store
	run     string
	name    string // of the shard
	epoch   int64
	places  int
	dearest int64               // what the dearest request costs
	limit   func() sheet.Budget // zero: none
	spent   func() sheet.Budget // by the shard, in all its slices, as far as they have said
	pause   func(reason string)
	settled func() // told when what was set aside is free again

	mu     sync.Mutex
	opened bool
	share  sheet.Share
	flying sheet.Budget // set aside for requests under way
	denied time.Time    // since when nothing could be afforded; zero: it can

	again atomic.Int64 // nothing is sent before, in nanoseconds since 1970
}

func (s *slice) newAllowance() *allowance {
	a := &allowance{
		st: s.ports.Store, run: s.job.known(), name: strconv.Itoa(s.shard), epoch: s.cp.Epoch, places: s.set.Concurrency,
		limit: s.budget, pause: s.pauseFor, settled: func() {},
		spent: func() sheet.Budget {
			t := s.tally.stats()
			return sheet.Budget{Calls: t.Dispatched, CostMicros: t.CostMicros}
		},
	}
	if s.job.ending != nil {
		a.name = "finish"
	}
	for c := range s.job.Map.Columns {
		for _, step := range s.job.Map.Columns[c].Steps {
			a.dearest = max(a.dearest, step.Tool.CostMicros)
		}
	}
	return a
}

func (s *slice) budget() sheet.Budget { return raised(sheet.Budget(s.job.budget), s.asked()) }

// BudgetOf is what a run may spend: what its map says, or what people have said since; zero: it has no budget.
func BudgetOf(r *sheet.Run, asked *sheet.Control) sheet.Budget { return raised(r.Budget, asked) }

func raised(b sheet.Budget, asked *sheet.Control) sheet.Budget {
	if asked == nil {
		return b
	}
	if asked.Raised.Calls > 0 {
		b.Calls = asked.Raised.Calls
	}
	if asked.Raised.CostMicros > 0 {
		b.CostMicros = asked.Raised.CostMicros
	}
	return b
}

func priceOf(t *mapspec.Tool) sheet.Budget { return sheet.Budget{Calls: 1, CostMicros: t.CostMicros} }

// wait is how long nothing can be afforded yet.
func (a *allowance) wait(now time.Time) time.Duration {
	return time.Duration(a.again.Load() - now.UnixNano())
}

// afford sets aside what the units may cost, in their order, as far as the budget goes. The others are not to be sent; if
// nothing can change that but somebody's word, the run pauses.
func (a *allowance) afford(ctx context.Context, units []*unit) (can, not []*unit, err error) {
	limit := a.limit()
	if limit == (sheet.Budget{}) {
		return units, nil, nil
	}
	can, not, why, err := a.reserve(ctx, limit, units)
	if why != "" {
		a.pause(why)
	}
	return can, not, err
}

func (a *allowance) reserve(ctx context.Context, limit sheet.Budget, units []*unit) (can, not []*unit, why string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var need sheet.Budget
	for _, u := range units {
		need = need.Plus(priceOf(u.turns[0].tool))
	}
	free := a.free()
	others := false
	if !a.opened || !free.Covers(need) {
		if free, others, err = a.take(ctx, limit, need); err != nil {
			return nil, nil, "", err
		}
	}
	n := 0
	for ; n < len(units); n++ {
		price := priceOf(units[n].turns[0].tool)
		if !free.Covers(price) {
			break
		}
		free, a.flying = free.Minus(price), a.flying.Plus(price)
	}
	if n == len(units) {
		a.denied = time.Time{}
		return units, nil, "", nil
	}
	return units[:n], units[n:], a.deny(limit, priceOf(units[n].turns[0].tool), others), nil
}

// free is what is set aside for no request yet.
func (a *allowance) free() sheet.Budget {
	return a.share.Taken.Minus(a.share.Lost).Minus(a.spent()).Minus(a.flying)
}

// deny waits for what may come back: from this slice's requests under way, and for a moment from others. Then it is for
// people to decide, and it says why.
func (a *allowance) deny(limit, price sheet.Budget, others bool) (why string) {
	now := time.Now()
	if a.denied.IsZero() {
		a.denied = now
	}
	a.again.Store(now.Add(affordAgain).UnixNano())
	if a.flying != (sheet.Budget{}) || others && now.Sub(a.denied) < othersPause {
		return ""
	}
	return a.reason(limit, price)
}

// reason says why the run pauses.
func (a *allowance) reason(limit, price sheet.Budget) string {
	text := fmt.Sprintf("the budget of %d calls is spent", limit.Calls)
	if limit.Calls == 0 || price.Calls <= a.free().Calls {
		text = fmt.Sprintf("the budget of %s is spent as far as it goes: the next call would cost %s", sheet.Money(limit.CostMicros), sheet.Money(price.CostMicros))
	}
	if lost := a.share.Lost; lost.Calls > 0 {
		text += fmt.Sprintf("; up to %d calls of it were under way when a process ended, and count as made", lost.Calls)
	}
	return text + "; raise it to go on"
}

// settle hears what became of a request: it was counted, or was not dispatched.
func (a *allowance) settle(u *unit) {
	if a.limit() == (sheet.Budget{}) {
		return
	}
	a.mu.Lock()
	a.flying = a.flying.Minus(priceOf(u.turns[0].tool)).AtMost(a.flying)
	a.again.Store(0)
	waits := !a.denied.IsZero()
	a.mu.Unlock()
	if waits {
		a.settled()
	}
}

// close gives back what was set aside and not spent. If that fails, the next slice finds out.
func (a *allowance) close(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.opened {
		return
	}
	_ = a.change(ctx, func(*sheet.Spending) {
		a.share.Open, a.share.Taken = false, a.spent().Plus(a.share.Lost)
	})
}
