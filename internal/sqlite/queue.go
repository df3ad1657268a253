package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// write is one caller's request. It is withdrawn if its caller gives up while it is queued; once a transaction has
// taken it, the caller waits for the true outcome.
type write struct {
	do    func(c *conn, now int64) error
	bytes int
	done  chan error
}

// queue holds the writes that wait for the next transaction.
type queue struct {
	mu     sync.Mutex
	writes []*write
	closed bool
	wake   chan struct{} // holds one token if the writer has something to look at
	groups atomic.Int64  // transactions so far
}

// submit queues a write and returns its outcome.
func (q *queue) submit(ctx context.Context, bytes int, do func(*conn, int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{do: do, bytes: bytes, done: make(chan error, 1)}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.writes = append(q.writes, w)
	q.mu.Unlock()
	q.signal()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if q.withdraw(w) {
			return ctx.Err()
		}
		return <-w.done
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// withdraw takes a write back and reports whether it was still queued.
func (q *queue) withdraw(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.writes, w)
	if i < 0 {
		return false
	}
	q.writes = slices.Delete(q.writes, i, i+1)
	return true
}

// take removes the writes of the next group.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.writes) && n < maxGroupWrites && bytes < maxGroupBytes {
		bytes += q.writes[n].bytes
		n++
	}
	group := q.writes[:n:n]
	q.writes = q.writes[n:]
	return group
}

func (q *queue) state() (empty, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.writes) == 0, q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}
