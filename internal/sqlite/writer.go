package sqlite

import (
	"context"
	"errors"
	"runtime"
	"time"

	"sluice/internal/core/table"
)

// writer owns the one connection that writes.
type writer struct {
	conn  *conn
	path  string
	queue *queue
	swept time.Time
}

// loop commits group after group until the queue is closed and empty.
func (w *writer) loop(done chan<- struct{}) {
	defer close(done)
	defer w.conn.close()
	for {
		empty, closed := w.queue.state()
		switch {
		case !empty:
			w.group()
			// The callers just answered run first: those that write again at once make the next group larger.
			runtime.Gosched()
		case closed:
			return
		default:
			<-w.queue.wake
		}
	}
}

// group runs one transaction. It takes writes only when it has the lock, so that callers can give up while another
// process keeps it.
func (w *writer) group() {
	err := patiently(context.Background(), func() error {
		if empty, _ := w.queue.state(); empty {
			return errGone
		}
		_, err := w.conn.exec("BEGIN IMMEDIATE")
		return err
	})
	if errors.Is(err, errGone) {
		return
	}
	group := w.queue.take()
	w.queue.groups.Add(1)
	outcomes := make([]error, len(group))
	if err == nil {
		err = w.commit(group, outcomes)
	}
	err = explain(w.path, err)
	for i, wr := range group {
		if err != nil {
			outcomes[i] = err
		}
		wr.done <- outcomes[i]
	}
}

// errGone: all callers have given up.
var errGone = errors.New("sqlite: nothing to write")

// commit runs the writes in the open transaction. A condition that does not hold is that write's outcome and nobody
// else's; any other error ends the transaction for all.
func (w *writer) commit(group []*write, outcomes []error) error {
	now := time.Now()
	err := w.sweep(now)
	for i, wr := range group {
		if err != nil {
			break
		}
		if err = wr.do(w.conn, now.Unix()); errors.Is(err, table.ErrConflict) {
			outcomes[i], err = err, nil
		}
	}
	return w.conn.end(err)
}

// Expired items are removed in passing: some with a transaction that is written anyway, once in a while.
const (
	sweepEvery = time.Minute
	sqlSweep   = `DELETE FROM items WHERE (part, sort) IN
		(SELECT part, sort FROM items WHERE expires <> 0 AND expires <= ? ORDER BY expires LIMIT 1000)`
)

func (w *writer) sweep(now time.Time) error {
	if now.Sub(w.swept) < sweepEvery {
		return nil
	}
	w.swept = now
	_, err := w.conn.exec(sqlSweep, now.Unix())
	return err
}
