package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Backlog is what the rows of a run are about that have not ended, as its checkpoints say: exact while the run is parked,
// and some seconds old while it is at work.
type Backlog struct {
	Holds       []Hold        // by provider
	Waiting     sheet.Waiting // for answers, or asleep
	Working     int           // rows that a slice has taken: they are computed, called for, or wait for their turn
	Interrupted int           // rows that a slice had taken which has ended; the next one goes on with them
}

// Hold is rows of a run that wait for one rate scope for the same reason.
type Hold struct {
	Provider string `json:"provider"`
	Scope    string `json:"scope,omitempty"` // the provider with its credential; empty: it is nobody's
	call.Why
	Until  time.Time `json:"until"`          // the first of them may go on
	Last   time.Time `json:"last"`           // the last of them may go on
	Since  time.Time `json:"since,omitzero"` // the scope has answered no call since (R5)
	Rows   int       `json:"rows"`           // 0: a step of `finish` waits
	Shards int       `json:"shards"`         // whose rows they are
}

// BacklogOf reads the checkpoints of a run that has not ended. Holds that are over are left out.
func BacklogOf(ctx context.Context, st *store.Store, r *sheet.Run) (Backlog, error) {
	var b Backlog
	now, held := time.Now(), holds{}
	for _, part := range r.Parts() {
		cp, err := sheet.LoadCheckpoint(ctx, st, part.ID, part.Shard)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return b, err
		}
		held.add(cp, part.ID == r.ID, now)
		b.Waiting = b.Waiting.Plus(cp.Waits)
		if part.ID == r.ID {
			b.taken(cp, now)
		}
	}
	b.Holds = held.list()
	return b, nil
}

// taken counts the rows that are held by nobody and have not ended.
func (b *Backlog) taken(cp *sheet.Checkpoint, now time.Time) {
	n := 0
	for i := range cp.Pending {
		if cp.Pending[i].Until.IsZero() {
			n++
		}
	}
	if (Ports{}).owned(cp, now) {
		b.Working += n
	} else {
		b.Interrupted += n
	}
}

type holdKey struct {
	scope string
	why   call.Why
}

type holds map[holdKey]*Hold

// add takes in a shard's held rows, or with rows false the steps of `finish`.
func (all holds) add(cp *sheet.Checkpoint, rows bool, now time.Time) {
	seen := map[holdKey]bool{}
	for _, p := range cp.Pending {
		if !p.Until.After(now) {
			continue
		}
		key := holdKey{p.Scope, p.Why}
		h := all[key]
		if h == nil {
			h = &Hold{Provider: ProviderOf(p.Scope), Scope: p.Scope, Why: p.Why, Until: p.Until, Last: p.Until}
			all[key] = h
		}
		if rows {
			h.Rows++
		}
		if !seen[key] {
			seen[key] = true
			h.Shards++
			h.Since = sooner(h.Since, sinceOf(cp, p.Scope))
		}
		h.Until, h.Last = sooner(h.Until, p.Until), later(h.Last, p.Until)
	}
}

func sinceOf(cp *sheet.Checkpoint, scope string) time.Time {
	for _, s := range cp.Streaks {
		if s.Scope == scope {
			return s.Since
		}
	}
	return time.Time{}
}

func (all holds) list() []Hold {
	list := make([]Hold, 0, len(all))
	for _, h := range all {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// ProviderOf is the provider of a rate scope, whose name ends in a digest of the credential.
func ProviderOf(scope string) string {
	if i := strings.LastIndexByte(scope, '-'); i > 0 {
		return scope[:i]
	}
	return cmp.Or(scope, "retry")
}
