package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Wait is a row on its shard's wait list: it has come to a boundary and is at work nowhere, until its time comes or an
// answer. It is not among the checkpoint's pending rows, whose number is bounded; any number may be on the list.
type Wait struct {
	At    time.Time `json:"-"` // zero: it does not wake by time
	Row   int64     `json:"-"` // ordinal
	Index int64     `json:"i"`
	Input string    `json:"d,omitempty"` // as in Pending
	Event bool      `json:"e,omitempty"`
}

// never sorts behind every time.
const never = 999_999_999_999_999

// Key is the item's place on the list: by time, then by row.
func (w *Wait) Key() string { return waitKey(w.At, w.Row) }

func waitKey(at time.Time, row int64) string {
	ms := int64(never)
	if !at.IsZero() {
		ms = min(max(at.UnixMilli(), 0), never-1)
	}
	return fmt.Sprintf("%s%015d/%012d", waitPrefix, ms, row)
}

// Add puts the row on the list, durably; false if it is there already, at the same time.
func (w *Wait) Add(ctx context.Context, st *store.Store, run string, shard int) (bool, error) {
	data, err := json.Marshal(w)
	if err != nil {
		return false, err
	}
	item := table.Item{Key: table.Key{Part: shardPart(run, shard), Sort: w.Key()}, Version: 1, Data: data}
	err = st.Table.Put(ctx, item, table.Absent())
	if errors.Is(err, table.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("wait list: %w", err)
	}
	return true, nil
}

// Waits yields the rows on a shard's list, the one that wakes first ahead, from a key on.
func Waits(ctx context.Context, st *store.Store, run string, shard int, from string) iter.Seq2[Wait, error] {
	return func(yield func(Wait, error) bool) {
		q := table.Prefix(shardPart(run, shard), waitPrefix)
		if from > q.From {
			q.From = from
		}
		for item, err := range st.Table.Query(ctx, q) {
			var w Wait
			if err == nil {
				w, err = parseWait(item)
			}
			if !yield(w, err) || err != nil {
				return
			}
		}
	}
}

// WaitsOf returns those of the rows that are on the list, each at the time that the letter names.
func WaitsOf(ctx context.Context, st *store.Store, run string, shard int, letters []Letter) (map[int64]Wait, error) {
	keys := make([]table.Key, len(letters))
	for i, l := range letters {
		keys[i] = table.Key{Part: shardPart(run, shard), Sort: waitKey(l.Wakes, l.Row)}
	}
	items, err := st.Table.GetMany(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("wait list: %w", err)
	}
	found := make(map[int64]Wait, len(items))
	for _, item := range items {
		w, err := parseWait(item)
		if err != nil {
			return nil, err
		}
		found[w.Row] = w
	}
	return found, nil
}

// Forget removes an item of the wait list or of the inbox.
func Forget(ctx context.Context, st *store.Store, run string, shard int, key string) error {
	return st.Table.Delete(ctx, table.Key{Part: shardPart(run, shard), Sort: key}, table.Always())
}

func parseWait(item table.Item) (Wait, error) {
	var w Wait
	ms, row, ok := strings.Cut(strings.TrimPrefix(item.Sort, waitPrefix), "/")
	at, err1 := strconv.ParseInt(ms, 10, 64)
	n, err2 := strconv.ParseInt(row, 10, 64)
	if err := errors.Join(err1, err2, json.Unmarshal(item.Data, &w)); err != nil || !ok {
		return w, fmt.Errorf("wait list item %q: %w", item.Sort, errors.Join(store.ErrDamaged, err))
	}
	w.Row = n
	if at != never {
		w.At = time.UnixMilli(at).UTC()
	}
	return w, nil
}
