package table

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
)

// Sizes that DynamoDB bills by: a write unit is 1 KB of one item, a strongly consistent read unit is 4 KB (Developer
// Guide, "DynamoDB read and write operations"). Sizes are of keys and data; a store adds a few bytes of names.
const (
	writeUnit = 1024
	readUnit  = 4 * 1024
	queryPage = 1 << 20 // a Query's page ends, and is rounded up, after 1 MB (API reference, "Query")
)

// Usage is what a table was asked to do, in the units that DynamoDB bills. It is worked out from sizes on this side of
// the port, whatever the store; an overwrite or a delete of a larger item costs more than it says, because the store
// bills the larger of the two sizes.
type Usage struct {
	Operations   int64 `json:"operations"`
	ItemsWritten int64 `json:"itemsWritten"` // put or deleted
	ItemsRead    int64 `json:"itemsRead"`
	WriteUnits   int64 `json:"writeUnits"`
	ReadUnits    int64 `json:"readUnits"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Operations:   u.Operations + v.Operations,
		ItemsWritten: u.ItemsWritten + v.ItemsWritten,
		ItemsRead:    u.ItemsRead + v.ItemsRead,
		WriteUnits:   u.WriteUnits + v.WriteUnits,
		ReadUnits:    u.ReadUnits + v.ReadUnits,
	}
}

// Sub returns what was used between v and u, a later snapshot.
func (u Usage) Sub(v Usage) Usage {
	return u.Add(Usage{-v.Operations, -v.ItemsWritten, -v.ItemsRead, -v.WriteUnits, -v.ReadUnits})
}

// Metered is a Table that counts what passes through it.
type Metered struct {
	inner                                                      Table
	operations, itemsWritten, itemsRead, writeUnits, readUnits atomic.Int64
}

var _ Table = (*Metered)(nil)

// Meter wraps a table.
func Meter(inner Table) *Metered { return &Metered{inner: inner} }

// Usage returns what has been counted so far.
func (m *Metered) Usage() Usage {
	return Usage{
		Operations:   m.operations.Load(),
		ItemsWritten: m.itemsWritten.Load(),
		ItemsRead:    m.itemsRead.Load(),
		WriteUnits:   m.writeUnits.Load(),
		ReadUnits:    m.readUnits.Load(),
	}
}

// Get implements Table. A miss costs a read unit.
func (m *Metered) Get(ctx context.Context, key Key) (Item, error) {
	item, err := m.inner.Get(ctx, key)
	switch {
	case err == nil:
		m.read(1, units(item.Size(), readUnit))
	case errors.Is(err, ErrNotFound):
		m.read(0, 1)
	}
	return item, err
}

// GetMany implements Table. Every item is rounded up for itself, and every miss costs a read unit.
func (m *Metered) GetMany(ctx context.Context, keys []Key) ([]Item, error) {
	items, err := m.inner.GetMany(ctx, keys)
	if err != nil || len(keys) == 0 {
		return items, err
	}
	distinct := make(map[Key]struct{}, len(keys))
	for _, key := range keys {
		distinct[key] = struct{}{}
	}
	cost := int64(len(distinct) - len(items))
	for _, item := range items {
		cost += units(item.Size(), readUnit)
	}
	m.read(int64(len(items)), cost)
	return items, nil
}

// Query implements Table. A page's size is summed before it is rounded up; an empty page costs a read unit. It counts
// what the caller took, not what a store read ahead.
func (m *Metered) Query(ctx context.Context, q Query) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var items, cost int64
		page := 0
		failed := false
		defer func() {
			if items > 0 || !failed {
				m.read(items, cost+units(page, readUnit))
			}
		}()
		for item, err := range m.inner.Query(ctx, q) {
			if err != nil {
				failed = true
			} else {
				items++
				if page > 0 && page+item.Size() > queryPage {
					cost += units(page, readUnit)
					page = 0
				}
				page += item.Size()
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// Put implements Table. A condition that does not hold costs the same as a write ("If the condition evaluates to false,
// DynamoDB still consumes write capacity": Developer Guide, "DynamoDB read and write operations").
func (m *Metered) Put(ctx context.Context, item Item, cond If) error {
	err := m.inner.Put(ctx, item, cond)
	m.wrote(ctx, err, item)
	return err
}

// PutMany implements Table.
func (m *Metered) PutMany(ctx context.Context, items []Item) error {
	err := m.inner.PutMany(ctx, items)
	m.wrote(ctx, err, items...)
	return err
}

// Delete implements Table. The size of what is deleted is not known here; one unit is the least.
func (m *Metered) Delete(ctx context.Context, key Key, cond If) error {
	err := m.inner.Delete(ctx, key, cond)
	m.wrote(ctx, err, Item{Key: key})
	return err
}

func (m *Metered) read(items, units int64) {
	m.operations.Add(1)
	m.itemsRead.Add(items)
	m.readUnits.Add(units)
}

// wrote counts a write that happened, may have happened, or failed on its condition.
func (m *Metered) wrote(ctx context.Context, err error, items ...Item) {
	if len(items) == 0 || errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) || err != nil && ctx.Err() != nil {
		return
	}
	m.operations.Add(1)
	for _, item := range items {
		m.writeUnits.Add(units(item.Size(), writeUnit))
	}
	if !errors.Is(err, ErrConflict) {
		m.itemsWritten.Add(int64(len(items)))
	}
}

// units rounds a size up to whole units, at least one.
func units(size, unit int) int64 { return int64(max((size+unit-1)/unit, 1)) }
