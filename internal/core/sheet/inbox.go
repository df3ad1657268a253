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

// Letter is an item of a shard's inbox: the row's event has been answered. It only calls the row back; what was answered
// is with the waiter, and stays there.
type Letter struct {
	Row    int64     `json:"-"` // ordinal
	Column int       `json:"-"`
	Step   int       `json:"-"`
	Wakes  time.Time `json:"w,omitzero"` // where the row is on the wait list
}

// Key is the letter's place in the inbox.
func (l *Letter) Key() string {
	return fmt.Sprintf("%s%012d/%04d/%06d", inboxPrefix, l.Row, l.Column, l.Step)
}

// Post puts the letter into the inbox of a shard. Posting it again changes nothing.
func (l *Letter) Post(ctx context.Context, st *store.Store, run string, shard int) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	item := table.Item{Key: table.Key{Part: shardPart(run, shard), Sort: l.Key()}, Version: 1, Data: data}
	if err := st.Table.Put(ctx, item, table.Always()); err != nil {
		return fmt.Errorf("inbox of shard %d of run %s: %w", shard, run, err)
	}
	return nil
}

// Inbox yields the letters of a shard, in the order of their rows.
func Inbox(ctx context.Context, st *store.Store, run string, shard int) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		for item, err := range st.Table.Query(ctx, table.Prefix(shardPart(run, shard), inboxPrefix)) {
			var l Letter
			if err == nil {
				l, err = parseLetter(item)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func parseLetter(item table.Item) (Letter, error) {
	var l Letter
	parts := strings.Split(strings.TrimPrefix(item.Sort, inboxPrefix), "/")
	if len(parts) != 3 {
		return l, fmt.Errorf("%w: inbox item %q", store.ErrDamaged, item.Sort)
	}
	row, err1 := strconv.ParseInt(parts[0], 10, 64)
	column, err2 := strconv.Atoi(parts[1])
	step, err3 := strconv.Atoi(parts[2])
	if err := errors.Join(err1, err2, err3, json.Unmarshal(item.Data, &l)); err != nil {
		return l, fmt.Errorf("%w: inbox item %q: %w", store.ErrDamaged, item.Sort, err)
	}
	l.Row, l.Column, l.Step = row, column, step
	return l, nil
}
