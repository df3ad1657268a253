package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Hold is rows of a run that wait for one provider.
type Hold struct {
	Provider string    `json:"provider"`
	Until    time.Time `json:"until"` // the first of them may go on
	Rows     int       `json:"rows"`  // 0: a step of `finish` waits
}

// Waiting tells how many rows of a run wait for answers or sleep, as its checkpoints say: exact while the run is parked.
func Waiting(ctx context.Context, st *store.Store, r *sheet.Run) (sheet.Waiting, error) {
	var sum sheet.Waiting
	for _, part := range r.Parts() {
		cp, err := sheet.LoadCheckpoint(ctx, st, part.ID, part.Shard)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(cp.Waits)
	}
	return sum, nil
}

// Holds tells what a run's rows wait for, as its checkpoints say: exact while the run is parked. Holds that are over
// are left out.
func Holds(ctx context.Context, st *store.Store, r *sheet.Run) ([]Hold, error) {
	found := map[string]*Hold{}
	now := time.Now()
	for _, part := range r.Parts() {
		cp, err := sheet.LoadCheckpoint(ctx, st, part.ID, part.Shard)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range cp.Pending {
			if !p.Until.After(now) {
				continue
			}
			name := ProviderOf(p.Scope)
			h := found[name]
			if h == nil {
				h = &Hold{Provider: name, Until: p.Until}
				found[name] = h
			}
			if part.ID == r.ID {
				h.Rows++
			}
			if p.Until.Before(h.Until) {
				h.Until = p.Until
			}
		}
	}
	list := make([]Hold, 0, len(found))
	for _, h := range found {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Hold) int { return cmp.Compare(a.Provider, b.Provider) })
	return list, nil
}

// ProviderOf is the provider of a rate scope, whose name ends in a digest of the credential.
func ProviderOf(scope string) string {
	if i := strings.LastIndexByte(scope, '-'); i > 0 {
		return scope[:i]
	}
	return cmp.Or(scope, "retry")
}
