// Package active is the list of runs that have not ended, as far as it is known: what the reaper looks at, so that its
// work does not grow with the history. A run may be listed that has ended, or that never came to be; it is never the
// other way round.
package active

import (
	"context"
	"iter"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

const part = "active"

// Entry is a run in the list.
type Entry struct {
	Run   string
	Since time.Time
}

// Add lists a run. It comes before the run's record is written.
func Add(ctx context.Context, t table.Table, run string) error {
	now, err := time.Now().UTC().MarshalText()
	if err != nil {
		return err
	}
	return t.Put(ctx, table.Item{Key: table.Key{Part: part, Sort: run}, Version: 1, Data: now}, table.Always())
}

// Remove takes a run off the list, after its record says that it has ended.
func Remove(ctx context.Context, t table.Table, run string) error {
	return t.Delete(ctx, table.Key{Part: part, Sort: run}, table.Always())
}

// Ended takes a run that has ended off the list, unless it is to be extended already.
func Ended(ctx context.Context, st *store.Store, rec *sheet.Run) error {
	asked, err := sheet.LoadControl(ctx, st, rec.ID)
	if err != nil || asked.Extends(rec) {
		return err
	}
	return Remove(ctx, st.Table, rec.ID)
}

// All yields the list.
func All(ctx context.Context, t table.Table) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for item, err := range t.Query(ctx, table.Query{Part: part}) {
			e := Entry{Run: item.Sort}
			if err == nil {
				err = e.Since.UnmarshalText(item.Data)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
