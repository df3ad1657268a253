package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Spending is what the shards of a run have taken of its budget: one small item, changed by compare-and-swap, so that
// slices that work side by side never exceed it together.
type Spending struct {
	V      int              `json:"v"`
	Shards map[string]Share `json:"shards"`

	version int64
}

// Share is what a shard has taken, in all its slices together.
type Share struct {
	Epoch  int64  `json:"epoch"`         // of the slice that took it last
	Open   bool   `json:"open"`          // that slice has not given back what it set aside
	Taken  Budget `json:"taken"`         // spent, or set aside to be
	Lost   Budget `json:"lost,omitzero"` // of it: what slices that died may have spent without saying so
	Places int    `json:"places"`        // requests that the slice has under way at most
}

// Sum is what all shards have taken, without one of them.
func (s *Spending) Sum(but string) (all Budget, open bool) {
	for name, share := range s.Shards {
		if name != but {
			all, open = all.Plus(share.Taken), open || share.Open
		}
	}
	return all, open
}

// LoadSpending reads what was taken; nothing, if nobody has taken anything yet.
func LoadSpending(ctx context.Context, st *store.Store, id string) (*Spending, error) {
	s := &Spending{Shards: map[string]Share{}}
	item, err := st.Table.Get(ctx, spendingKey(id))
	if errors.Is(err, table.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.version = item.Version
	if err := json.Unmarshal(item.Data, s); err != nil {
		return nil, fmt.Errorf("spending of run %s: %w", id, err)
	}
	return s, nil
}

// Save replaces it; table.ErrConflict if another slice has taken something since it was loaded. After any other error it
// is unknown what is stored.
func (s *Spending) Save(ctx context.Context, st *store.Store, id string) error {
	s.V = 1
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	cond := table.VersionIs(s.version)
	if s.version == 0 {
		cond = table.Absent()
	}
	err = st.Table.Put(ctx, table.Item{Key: spendingKey(id), Version: s.version + 1, Data: b}, cond)
	if err == nil {
		s.version++
	}
	return err
}

// Plus adds b to a budget.
func (a Budget) Plus(b Budget) Budget { return Budget{a.Calls + b.Calls, a.CostMicros + b.CostMicros} }

// Minus takes b from a budget.
func (a Budget) Minus(b Budget) Budget { return Budget{a.Calls - b.Calls, a.CostMicros - b.CostMicros} }

// Times is a budget n times over.
func (a Budget) Times(n int64) Budget { return Budget{a.Calls * n, a.CostMicros * n} }

// AtMost is the smaller of two budgets, each part for itself, and never less than nothing.
func (a Budget) AtMost(b Budget) Budget {
	return Budget{max(0, min(a.Calls, b.Calls)), max(0, min(a.CostMicros, b.CostMicros))}
}

// Covers reports whether need fits into a.
func (a Budget) Covers(need Budget) bool {
	return need.Calls <= a.Calls && (need.CostMicros == 0 || need.CostMicros <= a.CostMicros)
}

// Money is an amount as people write it.
func Money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	whole, rest := strconv.FormatInt(micros/1e6, 10), micros%1e6
	if rest == 0 {
		return sign + whole
	}
	return sign + whole + "." + strings.TrimRight(strconv.FormatInt(rest+1e6, 10)[1:], "0")
}
