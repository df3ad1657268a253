package run

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// away keeps track of the rows that have come to a boundary and are at work nowhere: they are on the shard's wait list,
// in the store, and this holds no row of them in memory. What it holds are the items of rows that have come back: a row
// that is back must not be lost by a crash, so its items stay until a checkpoint speaks of the row instead.
type away struct {
	st    *store.Store
	run   string
	shard int

	mu       sync.Mutex
	counts   sheet.Waiting
	next     time.Time       // when the first row on the list is due, as far as is known; zero: none by time
	from     string          // every item before it has come back
	back     map[string]bool // keys of items whose rows have come back; of an item of the wait list: true if it is counted
	deleting map[string]bool
	deleted  *sync.Cond
	exact    bool // the numbers are those of a slice that has ended in order
	unsure   bool // an item may have gone uncounted
}

func newAway(st *store.Store, run string, shard int, counts sheet.Waiting) *away {
	a := &away{st: st, run: run, shard: shard, counts: counts, back: map[string]bool{}, deleting: map[string]bool{}}
	a.deleted = sync.NewCond(&a.mu)
	return a
}

// add puts a row on the list. When it returns nil the item is durable, and the row may leave the pool.
func (a *away) add(ctx context.Context, w *sheet.Wait) error {
	key := w.Key()
	a.mu.Lock()
	for a.deleting[key] {
		a.deleted.Wait()
	}
	wasBack := a.back[key]
	delete(a.back, key)
	a.mu.Unlock()
	fresh, err := a.put(ctx, w)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fresh || wasBack {
		a.count(w.Event, 1)
	}
	a.next = sooner(a.next, w.At)
	if key < a.from {
		a.from = ""
	}
	return nil
}

// addTries is how often the write of an item is repeated; it is idempotent.
const addTries = 3

func (a *away) put(ctx context.Context, w *sheet.Wait) (fresh bool, err error) {
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	for range addTries {
		if fresh, err = w.Add(durable, a.st, a.run, a.shard); err == nil {
			return fresh, nil
		}
	}
	return false, err
}

func (a *away) count(event bool, n int64) {
	if event {
		a.counts.Answers = max(a.counts.Answers+n, 0)
		return
	}
	a.counts.Asleep = max(a.counts.Asleep+n, 0)
}

// returned notes that the row of an item of the list is back.
func (a *away) returned(w *sheet.Wait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := w.Key()
	if !a.back[key] {
		a.back[key] = true
		a.count(w.Event, -1)
	}
}

// left notes that a row has gone on from a boundary. If it has not come back from the list for it, it may be there all the
// same, after a crash, and would keep the shard from being done until its time.
func (a *away) left(b *sheet.Boundary, row int64) {
	w := sheet.Wait{At: b.Wakes(), Row: row}
	a.mu.Lock()
	defer a.mu.Unlock()
	if key := w.Key(); !a.back[key] {
		a.back[key] = true
		a.unsure = a.unsure || !a.exact
	}
}

// read notes that a letter has called its row back.
func (a *away) read(l *sheet.Letter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.back[l.Key()] = true
}

func (a *away) isBack(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.back[key]
}

func (a *away) start() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.from
}

// seen notes how far the list has been gone through, and when its next row is due.
func (a *away) seen(from string, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from, a.next = from, next
}

// wakes is when the first row on the list is due; zero: none by time.
func (a *away) wakes() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

func (a *away) waiting() sheet.Waiting {
	if a == nil {
		return sheet.Waiting{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.counts
	c.Settled = !a.unsure
	return c
}

// items lists what belongs to rows that are back. A checkpoint that lists the pending rows afterwards speaks of them.
func (a *away) items() []string {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := make([]string, 0, len(a.back))
	for key := range a.back {
		keys = append(keys, key)
	}
	return keys
}

// forgetting is how many items are deleted at once.
const forgetting = 16

// forget removes items that a checkpoint has made superfluous, but for those whose rows are on the list again.
func (a *away) forget(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(forgetting)
	for _, key := range keys {
		g.Go(func() error {
			if !a.hold(key) {
				return nil
			}
			err := sheet.Forget(ctx, a.st, a.run, a.shard, key)
			a.release(key, err == nil)
			return err
		})
	}
	return g.Wait()
}

// hold keeps a row from going back to the list under this key while its item is being deleted.
func (a *away) hold(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.back[key] {
		return false
	}
	a.deleting[key] = true
	return true
}

func (a *away) release(key string, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.deleting, key)
	if done {
		delete(a.back, key)
	}
	a.deleted.Broadcast()
}

// first is the row on the list that wakes first, of those that have been admitted and are not back; false if there is none.
func (a *away) first(ctx context.Context, cursor int64) (sheet.Wait, bool, error) {
	if a == nil {
		return sheet.Wait{}, false, nil
	}
	for w, err := range sheet.Waits(ctx, a.st, a.run, a.shard, "") {
		if err != nil {
			return w, false, err
		}
		if w.Row < cursor && !a.isBack(w.Key()) {
			return w, true, nil
		}
	}
	return sheet.Wait{}, false, nil
}
