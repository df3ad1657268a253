package run

import (
	"context"
	"errors"
	"fmt"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// take takes what is needed from the budget, or as much as there is, and a little more where there is plenty. It returns
// what is free now, and whether others may give something back.
func (a *allowance) take(ctx context.Context, limit, need sheet.Budget) (sheet.Budget, bool, error) {
	var open bool
	err := a.change(ctx, func(all *sheet.Spending) {
		a.reconcile(all.Shards[a.name])
		var others sheet.Budget
		others, open = all.Sum(a.name)
		left := bounded(limit).Minus(others).Minus(a.share.Taken)
		want := need.Minus(a.free())
		more := sheet.Budget{Calls: setAside, CostMicros: setAside * a.dearest}.AtMost(sheet.Budget{Calls: left.Calls / partOfRest, CostMicros: left.CostMicros / partOfRest})
		a.share.Taken = a.share.Taken.Plus(want.Plus(more).AtMost(left))
	})
	if err == nil {
		a.opened = true
	}
	return a.free(), open, err
}

// bounded is a limit in which no bound is a very high one.
func bounded(limit sheet.Budget) sheet.Budget {
	const none = 1 << 62
	if limit.Calls == 0 {
		limit.Calls = none
	}
	if limit.CostMicros == 0 {
		limit.CostMicros = none
	}
	return limit
}

// reconcile finds out what earlier slices of the shard have spent. What one set aside and has not given back, because it
// died, was spent as far as is known, and beyond that by at most what it had under way and had not saved: twice as many
// requests as it had places.
func (a *allowance) reconcile(stored sheet.Share) {
	if a.opened {
		return
	}
	a.share = sheet.Share{Epoch: a.epoch, Open: true, Places: a.places}
	said := a.spent()
	unsaid := stored.Taken.Minus(said)
	if stored.Open {
		unknown := sheet.Budget{Calls: 1, CostMicros: a.dearest}.Times(2 * int64(stored.Places))
		unsaid = unsaid.AtMost(stored.Lost.Plus(unknown))
	}
	a.share.Lost = unsaid.AtMost(unsaid)
	a.share.Taken = said.Plus(a.share.Lost).Plus(a.flying)
}

// change brings this slice's share into the item. A slice that has lost its shard leaves it alone.
func (a *allowance) change(ctx context.Context, decide func(*sheet.Spending)) error {
	before := a.share
	for {
		all, err := sheet.LoadSpending(ctx, a.st, a.run)
		if err != nil {
			return fmt.Errorf("budget: %w", err)
		}
		if all.Shards[a.name].Epoch > a.epoch {
			return ErrLost
		}
		a.share = before
		decide(all)
		if a.share == all.Shards[a.name] {
			return nil
		}
		all.Shards[a.name] = a.share
		err = all.Save(ctx, a.st, a.run)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, table.ErrConflict):
			continue
		}
		a.share = before // written or not: what is taken twice is given back at the end
		return fmt.Errorf("budget: %w", err)
	}
}
