package gateway

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"sluice/internal/core/call"
)

const (
	// DefaultBodyMemory is how many bytes of answers a process holds at once. An answer that is decoded takes several
	// times as much for a moment; 64 MB leave room for that in the smallest function that is of use.
	DefaultBodyMemory = 64 << 20
	// minBodyMemory keeps a few answers readable side by side.
	minBodyMemory = 1 << 20

	// FirstPart is what a body of unknown length may take before it has to be worth more. Most answers end within it.
	FirstPart = 64 << 10
)

// Bodies is the memory of a process for the bodies of answers (M6). A body is read when there is room for it, first come
// first served. It is safe for concurrent use.
//
// A body of unknown length first takes a small part, and the rest when it turns out to be longer. Who holds a first part
// and waits for a rest could wait for ever if both came from the same stock: so a quarter is for first parts and what
// is no larger, and the rest for the rest, which who holds it gives back without waiting for anything more.
type Bodies struct {
	small, large *semaphore.Weighted
	most         int64 // of large

	mu   sync.Mutex
	held int64
	use  call.BodyUse
}

// NewBodies sets aside so many bytes; 0: DefaultBodyMemory.
func NewBodies(memory int64) *Bodies {
	if memory <= 0 {
		memory = DefaultBodyMemory
	}
	memory = max(memory, minBodyMemory)
	small := memory / 4
	return &Bodies{small: semaphore.NewWeighted(small), large: semaphore.NewWeighted(memory - small), most: memory - small}
}

// Use is what was asked of the memory so far.
func (b *Bodies) Use() call.BodyUse {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.use
}

// Turn begins the turn of one body, which holds nothing yet.
func (b *Bodies) Turn() *Turn { return &Turn{of: b} }

// turn begins the turn of a body that is read under a context, whose caller may want to know what it takes.
func (b *Bodies) turn(ctx context.Context) *Turn { return &Turn{of: b, tally: call.Bodies(ctx)} }

// Turn is one body's share. A nil Turn is one without a limit. It is not safe for concurrent use.
type Turn struct {
	of           *Bodies
	tally        *call.BodyTally
	small, large int64
	taken        bool
}

// Most is the longest body that can be held.
func (t *Turn) Most() int64 {
	if t == nil {
		return math.MaxInt64
	}
	return t.of.most
}

// Take sets n bytes aside in addition to what the turn holds, at most Most. It waits until there is room, or for the end
// of ctx. Waiting is called before it waits, and what it returns after; it may be nil.
func (t *Turn) Take(ctx context.Context, n int64, waiting func() (done func())) error {
	if t == nil || n <= 0 {
		return nil
	}
	stock, share := t.of.large, &t.large
	if n <= FirstPart && t.small == 0 {
		stock, share = t.of.small, &t.small
	}
	if !stock.TryAcquire(n) {
		began := time.Now()
		if waiting != nil {
			defer waiting()()
		}
		err := stock.Acquire(ctx, n)
		t.waited(time.Since(began))
		if err != nil {
			return err
		}
	}
	*share += n
	t.took(n, !t.taken)
	t.taken = true
	return nil
}

// Measured notes how long the body was.
func (t *Turn) Measured(n int64) {
	if t != nil {
		t.count(call.BodyUse{Bytes: n})
	}
}

// Refused notes that the body was larger than allowed.
func (t *Turn) Refused() {
	if t != nil {
		t.count(call.BodyUse{Refusals: 1})
	}
}

// End gives everything back. It may be called more than once.
func (t *Turn) End() {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	t.of.held -= t.small + t.large
	t.of.mu.Unlock()
	t.of.small.Release(t.small)
	t.of.large.Release(t.large)
	t.small, t.large = 0, 0
}

// count adds to what was asked of the memory, by all and by whoever reads this body.
func (t *Turn) count(u call.BodyUse) {
	t.of.mu.Lock()
	t.of.use = t.of.use.Plus(u)
	t.of.mu.Unlock()
	t.tally.Add(u)
}

func (t *Turn) took(n int64, first bool) {
	t.of.mu.Lock()
	t.of.held += n
	u := call.BodyUse{Peak: t.of.held}
	t.of.mu.Unlock()
	if first {
		u.Turns = 1
	}
	t.count(u)
}

func (t *Turn) waited(d time.Duration) { t.count(call.BodyUse{Waits: 1, WaitMs: d.Milliseconds()}) }
