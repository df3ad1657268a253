// Package sqlite keeps the table port in one local SQLite file. It owns durability (a write that returns nil has been
// synced to the disk), group commit, and living together with other processes that use the same file; it refuses files
// of other programs and of newer versions.
//
// All writes go through one goroutine, which commits in groups: what is queued while a transaction commits forms the
// next one, so that many writers share one sync and a lone one never waits for company. Reads use their own read-only
// connections, which SQLite's write-ahead log never blocks.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice/internal/core/table"
)

// ErrClosed: the table was closed; nothing was done.
var ErrClosed = errors.New("sqlite: the state file is closed")

// Table is a table.Table in one file.
type Table struct {
	path    string
	readers chan *conn // idle connections; nil stands for one not opened yet
	queue   queue
	closing sync.Once
	closed  chan struct{} // no further reads
	done    chan struct{} // the writer has ended
}

var _ table.Table = (*Table)(nil)

// maxReaders bounds the number of reads at once. Reads that find their pages in memory are bound by the processor.
const maxReaders = 4

// Open opens the file at path, creating it and its folder if need be. Other processes may use it at the same time.
func Open(ctx context.Context, path string) (*Table, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // customers' data: for the owner alone
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	c, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	t := &Table{
		path:    path,
		readers: make(chan *conn, maxReaders),
		closed:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	for range maxReaders {
		t.readers <- nil
	}
	t.queue.wake = make(chan struct{}, 1)
	go (&writer{conn: c, path: path, queue: &t.queue}).loop(t.done)
	return t, nil
}

// Close commits what has been queued, waits for reads under way, and releases the file.
func (t *Table) Close() error {
	t.closing.Do(func() {
		t.queue.close()
		<-t.done
		close(t.closed)
		for range maxReaders {
			if c := <-t.readers; c != nil {
				c.close()
			}
		}
	})
	return nil
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, key table.Key) (table.Item, error) {
	items, err := t.GetMany(ctx, []table.Key{key})
	if err != nil {
		return table.Item{}, err
	}
	if len(items) == 0 {
		return table.Item{}, fmt.Errorf("%w: %s", table.ErrNotFound, key)
	}
	return items[0], nil
}

// GetMany implements table.Table.
func (t *Table) GetMany(ctx context.Context, keys []table.Key) ([]table.Item, error) {
	if err := table.CheckKeys(keys); err != nil {
		return nil, err
	}
	var items []table.Item
	err := t.read(ctx, func(c *conn) (err error) {
		items, err = c.getMany(keys, time.Now().Unix())
		return err
	})
	return items, err
}

// Query implements table.Table. It reads in pages and holds no connection while the caller has an item.
func (t *Table) Query(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		if err := table.CheckQuery(q); err != nil {
			yield(table.Item{}, err)
			return
		}
		for p := newPager(q); !p.done; {
			err := t.read(ctx, func(c *conn) error { return p.next(c) })
			if err != nil {
				yield(table.Item{}, err)
				return
			}
			for _, item := range p.items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Put implements table.Table.
func (t *Table) Put(ctx context.Context, item table.Item, cond table.If) error {
	if err := table.Check(item); err != nil {
		return err
	}
	return t.queue.submit(ctx, item.Size(), func(c *conn, now int64) error { return c.put(item, cond, now) })
}

// maxGroupBytes and maxGroupWrites bound one transaction, and with it the memory and the time that it takes.
const (
	maxGroupBytes  = 4 << 20
	maxGroupWrites = 4096
)

// PutMany implements table.Table. What is too much for one transaction takes several.
func (t *Table) PutMany(ctx context.Context, items []table.Item) error {
	if err := table.CheckAll(items); err != nil {
		return err
	}
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && n < maxGroupWrites && size < maxGroupBytes {
			size += items[n].Size()
			n++
		}
		part := items[:n]
		err := t.queue.submit(ctx, size, func(c *conn, now int64) error {
			for _, item := range part {
				if err := c.put(item, table.Always(), now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		items = items[n:]
	}
	return ctx.Err()
}

// Delete implements table.Table.
func (t *Table) Delete(ctx context.Context, key table.Key, cond table.If) error {
	if err := table.CheckKey(key); err != nil {
		return err
	}
	return t.queue.submit(ctx, 0, func(c *conn, now int64) error { return c.delete(key, cond, now) })
}

// read runs f with a connection that nobody else uses meanwhile.
func (t *Table) read(ctx context.Context, f func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-t.readers:
	case <-t.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { t.readers <- c }()
	return explain(t.path, patiently(ctx, func() (err error) {
		if c == nil {
			if c, err = openConn(t.path, "?mode=ro"); err != nil {
				return err
			}
		}
		return f(c)
	}))
}
