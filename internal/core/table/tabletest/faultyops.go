package tabletest

import (
	"context"
	"errors"
	"iter"
	"slices"

	"sluice/internal/core/table"
)

// run does an operation as the fault has it. half, if there is one, does a part of it.
func run(kind Kind, fault error, whole, half func() error) error {
	do := whole
	switch {
	case kind == NotDone, kind == HalfDone && half == nil:
		return fault
	case kind == HalfDone:
		do = half
	}
	if err := do(); err != nil {
		return err
	}
	return fault
}

func keysOf(items []table.Item) []table.Key {
	keys := make([]table.Key, len(items))
	for i, item := range items {
		keys[i] = item.Key
	}
	return keys
}

// Get implements table.Table.
func (f *Faulty) Get(ctx context.Context, key table.Key) (item table.Item, err error) {
	kind, fault := f.strike(ctx, OpGet, key)
	err = run(kind, fault, func() (err error) { item, err = f.inner.Get(ctx, key); return err }, nil)
	if err != nil {
		item = table.Item{}
	}
	f.end(Event{Op: OpGet, Keys: []table.Key{key}, Err: err})
	return item, err
}

// GetMany implements table.Table.
func (f *Faulty) GetMany(ctx context.Context, keys []table.Key) (items []table.Item, err error) {
	kind, fault := f.strike(ctx, OpGetMany, keys...)
	err = run(kind, fault, func() (err error) { items, err = f.inner.GetMany(ctx, keys); return err }, nil)
	if err != nil {
		items = nil
	}
	f.end(Event{Op: OpGetMany, Keys: slices.Clone(keys), Err: err})
	return items, err
}

// Query implements table.Table.
func (f *Faulty) Query(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		key := table.Key{Part: q.Part, Sort: q.From}
		kind, fault := f.strike(ctx, OpQuery, key)
		err := fault
		if kind != NotDone {
			err = f.query(ctx, q, kind, fault, yield)
		}
		if errors.Is(err, errBroken) {
			err = nil
		}
		f.end(Event{Op: OpQuery, Keys: []table.Key{key}, Err: err})
		if err != nil {
			yield(table.Item{}, err)
		}
	}
}

// errBroken: the caller broke the query off.
var errBroken = errors.New("tabletest: broken off")

func (f *Faulty) query(ctx context.Context, q table.Query, kind Kind, fault error, yield func(table.Item, error) bool) error {
	for item, err := range f.inner.Query(ctx, q) {
		if err != nil {
			return err
		}
		if !yield(item, nil) {
			return errBroken
		}
		if kind == HalfDone {
			break
		}
	}
	return fault
}

// Put implements table.Table.
func (f *Faulty) Put(ctx context.Context, item table.Item, cond table.If) error {
	kind, fault := f.strike(ctx, OpPut, item.Key)
	err := run(kind, fault, func() error { return f.inner.Put(ctx, item, cond) }, nil)
	f.end(Event{Op: OpPut, Keys: []table.Key{item.Key}, Cond: cond, Err: err})
	return err
}

// PutMany implements table.Table.
func (f *Faulty) PutMany(ctx context.Context, items []table.Item) error {
	keys := keysOf(items)
	kind, fault := f.strike(ctx, OpPutMany, keys...)
	err := run(kind, fault,
		func() error { return f.inner.PutMany(ctx, items) },
		func() error { return f.inner.PutMany(ctx, items[:len(items)/2]) })
	f.end(Event{Op: OpPutMany, Keys: keys, Err: err})
	return err
}

// Delete implements table.Table.
func (f *Faulty) Delete(ctx context.Context, key table.Key, cond table.If) error {
	kind, fault := f.strike(ctx, OpDelete, key)
	err := run(kind, fault, func() error { return f.inner.Delete(ctx, key, cond) }, nil)
	f.end(Event{Op: OpDelete, Keys: []table.Key{key}, Cond: cond, Err: err})
	return err
}
