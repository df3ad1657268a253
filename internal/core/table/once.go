package table

import (
	"context"
	"errors"
	"sync"
)

// Once is a Table that reads each item at most once, so that all who look at it through the same Once see it as it was at
// one moment, and the store is asked for it only once. It is for a single look, such as one request; queries and GetMany
// are passed on, and so are writes, after which the item is read anew.
type Once struct {
	Table

	mu    sync.Mutex
	known map[Key]known
}

// known is what a Get has returned.
type known struct {
	item Item
	err  error // nil or ErrNotFound
}

// NewOnce wraps a table.
func NewOnce(inner Table) *Once { return &Once{Table: inner, known: map[Key]known{}} }

// Get implements Table.
func (o *Once) Get(ctx context.Context, key Key) (Item, error) {
	o.mu.Lock()
	k, ok := o.known[key]
	o.mu.Unlock()
	if !ok {
		k.item, k.err = o.Table.Get(ctx, key)
		if k.err != nil && !errors.Is(k.err, ErrNotFound) {
			return k.item, k.err
		}
		o.mu.Lock()
		o.known[key] = k
		o.mu.Unlock()
	}
	item := k.item
	item.Data = append([]byte(nil), item.Data...) // the caller's own
	return item, k.err
}

// Put implements Table.
func (o *Once) Put(ctx context.Context, item Item, cond If) error {
	defer o.forget(item.Key)
	return o.Table.Put(ctx, item, cond)
}

// PutMany implements Table.
func (o *Once) PutMany(ctx context.Context, items []Item) error {
	for _, item := range items {
		defer o.forget(item.Key)
	}
	return o.Table.PutMany(ctx, items)
}

// Delete implements Table.
func (o *Once) Delete(ctx context.Context, key Key, cond If) error {
	defer o.forget(key)
	return o.Table.Delete(ctx, key, cond)
}

func (o *Once) forget(key Key) {
	o.mu.Lock()
	delete(o.known, key)
	o.mu.Unlock()
}
