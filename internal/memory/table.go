// Package memory keeps the storage ports in plain memory, for tests and as the benchmark's floor. It owns ordering and
// conditions; it refuses durability: what it holds ends with the process. Expired items are hidden at once and stay in
// memory until they are overwritten or deleted.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"sluice/internal/core/table"
)

// Table is a table.Table in memory.
type Table struct {
	mu    sync.RWMutex
	parts map[string]*sorted
}

var _ table.Table = (*Table)(nil)

// New returns an empty table.
func New() *Table { return &Table{parts: map[string]*sorted{}} }

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, key table.Key) (table.Item, error) {
	if err := first(ctx.Err(), table.CheckKey(key)); err != nil {
		return table.Item{}, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.live(key); e != nil {
		return e.item(key.Part), nil
	}
	return table.Item{}, fmt.Errorf("%w: %s", table.ErrNotFound, key)
}

// GetMany implements table.Table.
func (t *Table) GetMany(ctx context.Context, keys []table.Key) ([]table.Item, error) {
	if err := first(ctx.Err(), table.CheckKeys(keys)); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var items []table.Item
	seen := make(map[table.Key]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if e := t.live(key); e != nil {
			items = append(items, e.item(key.Part))
		}
	}
	return items, nil
}

// Put implements table.Table.
func (t *Table) Put(ctx context.Context, item table.Item, cond table.If) error {
	if err := first(ctx.Err(), table.Check(item)); err != nil {
		return err
	}
	e := newEntry(item)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holds(item.Key, cond) {
		return fmt.Errorf("%w: %s", table.ErrConflict, item.Key)
	}
	t.part(item.Part).put(e)
	return nil
}

// PutMany implements table.Table.
func (t *Table) PutMany(ctx context.Context, items []table.Item) error {
	if err := first(ctx.Err(), table.CheckAll(items)); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, item := range items {
		t.part(item.Part).put(newEntry(item))
	}
	return nil
}

// Delete implements table.Table.
func (t *Table) Delete(ctx context.Context, key table.Key, cond table.If) error {
	if err := first(ctx.Err(), table.CheckKey(key)); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holds(key, cond) {
		return fmt.Errorf("%w: %s", table.ErrConflict, key)
	}
	if p := t.parts[key.Part]; p != nil {
		p.remove(key.Sort)
		if p.empty() {
			delete(t.parts, key.Part)
		}
	}
	return nil
}

// pageItems bounds how many items a query copies in one go, so that it neither holds the lock for long nor copies much
// that a caller who breaks off does not want.
const pageItems = 128

// Query implements table.Table. No lock is held while the caller has an item, so it may use the table meanwhile.
func (t *Table) Query(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		if err := first(ctx.Err(), table.CheckQuery(q)); err != nil {
			yield(table.Item{}, err)
			return
		}
		cur := span{from: q.From, to: q.To, reverse: q.Reverse}
		size := 8 // small at first: many queries want one item
		for left := q.Limit; ; size = min(2*size, pageItems) {
			page, more := t.page(q.Part, &cur, size)
			for _, item := range page {
				if err := ctx.Err(); err != nil {
					yield(table.Item{}, err)
					return
				}
				if !yield(item, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// page copies the next live items of a span and moves the span behind them.
func (t *Table) page(part string, cur *span, size int) (items []table.Item, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.parts[part]
	if p == nil {
		return nil, false
	}
	now := time.Now()
	for e := range p.scan(*cur) {
		if len(items) == size {
			return items, true
		}
		cur.pass(e.sort)
		if !table.Expired(e.expires, now) {
			items = append(items, e.item(part))
		}
	}
	return items, false
}

// part returns a partition, created if need be. The caller holds the lock.
func (t *Table) part(name string) *sorted {
	p := t.parts[name]
	if p == nil {
		p = &sorted{}
		t.parts[name] = p
	}
	return p
}

// live returns the entry that reads see under key, or nil. The caller holds the lock.
func (t *Table) live(key table.Key) *entry {
	p := t.parts[key.Part]
	if p == nil {
		return nil
	}
	e := p.get(key.Sort)
	if e == nil || e.expires != 0 && table.Expired(e.expires, time.Now()) {
		return nil
	}
	return e
}

func (t *Table) holds(key table.Key, cond table.If) bool {
	if cond.Unconditional() {
		return true
	}
	e := t.live(key)
	if want, ok := cond.WantsVersion(); ok {
		return e != nil && e.version == want
	}
	return e == nil
}

func newEntry(item table.Item) entry {
	return entry{item.Sort, item.Version, table.ExpirySeconds(item.Expires), bytes.Clone(item.Data)}
}

func (e *entry) item(part string) table.Item {
	return table.Item{
		Key:     table.Key{Part: part, Sort: e.sort},
		Version: e.version,
		Data:    bytes.Clone(e.data),
		Expires: table.ExpiryTime(e.expires),
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
