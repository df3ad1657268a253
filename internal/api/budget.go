package api

import (
	"context"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Spent is a run's budget, and what of it is used.
type Spent struct {
	Limit    sheet.Budget `json:"limit"`    // a part that is left out is not bounded
	Spent    sheet.Budget `json:"spent"`    // by calls that were made
	SetAside sheet.Budget `json:"setAside"` // for calls under way or about to be made, and for those of which a slice that died has left no word
}

// spentOf is nil of a run without a budget, which costs no read, as does one that has ended.
func spentOf(ctx context.Context, st *store.Store, r *sheet.Run, asked *sheet.Control) (*Spent, error) {
	limit := run.BudgetOf(r, asked)
	if limit == (sheet.Budget{}) {
		return nil, nil
	}
	of := &Spent{Limit: limit, Spent: sheet.Budget{Calls: r.Stats.Dispatched, CostMicros: r.Stats.CostMicros}}
	if r.Status.Ended() {
		return of, nil // nothing is under way
	}
	all, err := sheet.LoadSpending(ctx, st, r.ID)
	if err != nil {
		return nil, err
	}
	taken, _ := all.Sum("")
	rest := taken.Minus(of.Spent)
	of.SetAside = rest.AtMost(rest)
	return of, nil
}
