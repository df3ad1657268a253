package run

import (
	"container/heap"
	"time"

	"sluice/internal/core/hold"
	"sluice/internal/core/sheet"
)

// task is a row on its way through the slice.
type task struct {
	sheet.Pending
	residency hold.Residency // of its open call
	heldAt    time.Time
	looked    time.Time // the hold after which it has called
	eligible  time.Time // when it may run again
	slot      int       // in its heap
}

// taskHeap orders tasks by the time at which they may run, then by row.
type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if !h[i].eligible.Equal(h[j].eligible) {
		return h[i].eligible.Before(h[j].eligible)
	}
	return h[i].Row < h[j].Row
}
func (h taskHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *taskHeap) Push(x any)   { t := x.(*task); t.slot = len(*h); *h = append(*h, t) }
func (h *taskHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// retryQueue holds the rows that wait for a deadline: those with budget left, which may keep an idle slice alive,
// and those whose budget is spent, which may not (Q2).
type retryQueue struct {
	resident, spent taskHeap
	rows            map[int64]*task
}

func (q *retryQueue) Len() int { return len(q.resident) + len(q.spent) }

// add queues a held row. A row whose budget is spent may rejoin only after a second, however early its deadline:
// otherwise a provider that answers with expired deadlines would be asked in a loop (R2).
func (q *retryQueue) add(t *task, now time.Time) {
	q.note(t)
	t.eligible = t.Until
	if t.Spent {
		t.eligible = hold.WakeAt(now, t.Until)
		heap.Push(&q.spent, t)
		return
	}
	if floor := now.Add(time.Millisecond); t.eligible.Before(floor) {
		t.eligible = floor
	}
	heap.Push(&q.resident, t)
}

// resume queues a row of an earlier slice: it may run at its deadline.
func (q *retryQueue) resume(t *task) {
	q.note(t)
	t.eligible = t.Until
	heap.Push(&q.spent, t)
}

// hasten makes the rows that wait for a scope due now.
func (q *retryQueue) hasten(scope string, now time.Time) {
	for _, h := range []*taskHeap{&q.resident, &q.spent} {
		for _, t := range *h {
			if t.Scope == scope {
				t.eligible = now
			}
		}
		heap.Init(h)
	}
}

// takeDue removes the row that has been due longest, nil if none is.
func (q *retryQueue) takeDue(now time.Time) *task {
	first := q.first()
	if first == nil || (*first)[0].eligible.After(now) {
		return nil
	}
	t := heap.Pop(first).(*task)
	delete(q.rows, t.Row)
	return t
}

func (q *retryQueue) note(t *task) {
	if q.rows == nil {
		q.rows = map[int64]*task{}
	}
	q.rows[t.Row] = t
}

// bring makes a waiting row due now; false if it is not in the queue.
func (q *retryQueue) bring(row int64, now time.Time) bool {
	t := q.rows[row]
	if t == nil {
		return false
	}
	t.eligible = now
	if h := &q.resident; t.slot < len(*h) && (*h)[t.slot] == t {
		heap.Fix(h, t.slot)
	} else {
		heap.Fix(&q.spent, t.slot)
	}
	return true
}

// first is the heap whose head comes first.
func (q *retryQueue) first() *taskHeap {
	switch {
	case len(q.resident) == 0 && len(q.spent) == 0:
		return nil
	case len(q.spent) == 0 || len(q.resident) > 0 && !q.spent[0].eligible.Before(q.resident[0].eligible):
		return &q.resident
	}
	return &q.spent
}

// next is when the next row may run; resident asks only for rows that may keep an idle slice alive.
func (q *retryQueue) next(resident bool) (time.Time, bool) {
	if resident {
		if len(q.resident) == 0 {
			return time.Time{}, false
		}
		return q.resident[0].eligible, true
	}
	first := q.first()
	if first == nil {
		return time.Time{}, false
	}
	return (*first)[0].eligible, true
}

// all yields every waiting row, in no order.
func (q *retryQueue) all() []*task {
	return append(append(make([]*task, 0, q.Len()), q.resident...), q.spent...)
}
