package run

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"time"
)

// How full memory may be before rows at work become fewer, and from when they become more again, in parts of the limit
// (M7). What the user has asked for is kept until the process would die of it.
const (
	heapHigh, heapLow           = 0.70, 0.55 // where the map says `auto`
	heapCritical, heapTolerable = 0.90, 0.80 // where somebody has asked for a number
	heapLook                    = 250 * time.Millisecond
	collectEvery                = 2 * time.Second // while rows are kept back, so that they are not kept back for garbage
)

// throttle decides how many rows are at work.
type throttle struct {
	base      int
	high, low float64
	places    int
	cycle     uint64 // of the collection that the last decision rests on
}

func newThrottle(places int, asked bool) throttle {
	t := throttle{base: places, places: places, high: heapHigh, low: heapLow}
	if asked {
		t.high, t.low = heapCritical, heapTolerable
	}
	return t
}

// look takes in how full memory is. Places become fewer by a quarter, once for each collection that finds it too full, and
// more by an eighth of what they were at first.
func (t *throttle) look(used, limit int64, cycle uint64) (places int) {
	share := float64(used) / float64(limit)
	switch {
	case share >= t.high && cycle != t.cycle:
		t.places, t.cycle = max(1, t.places*3/4), cycle
	case share < t.low && t.places < t.base:
		t.places = min(t.base, t.places+max(1, t.base/8))
	}
	return t.places
}

// watchHeap has fewer rows at work while memory is full, until ctx ends.
func (s *slice) watchHeap(ctx context.Context) {
	heap := s.set.Heap
	if heap == nil {
		heap = processHeap{}
	}
	if _, limit, _ := heap.Use(); limit <= 0 {
		return // there is nothing to hold it against
	}
	t := newThrottle(s.set.Concurrency, s.set.asked)
	tick := time.NewTicker(heapLook)
	defer tick.Stop()
	for collected := time.Now(); ; {
		used, limit, cycle := heap.Use()
		s.tally.heap(used)
		before := t.places
		if s.pool.resize(t.look(used, limit, cycle), t.base); t.places < before {
			s.tally.squeezed.Add(1)
		}
		if t.places < t.base && time.Since(collected) >= collectEvery {
			collected = time.Now()
			heap.Collect()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// heap notes how much was in use.
func (t *tally) heap(used int64) {
	for {
		peak := t.heapPeak.Load()
		if used <= peak || t.heapPeak.CompareAndSwap(peak, used) {
			return
		}
	}
}

// resize changes how many rows may be at work. While they are fewer than they should be, rows that wait for their turn
// count too: they hold memory.
func (p *pool) resize(places, base int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := places > p.limit
	p.limit, p.squeezed = places, places < base
	if more {
		p.offer()
		p.feed()
		p.tell()
	}
}

// processHeap is the memory of this process, as the runtime knows it: what lives on the heap since the last collection, and
// what is not heap, against the limit of GOMEMLIMIT.
type processHeap struct{}

// Use implements Heap.
func (processHeap) Use() (used, limit int64, cycle uint64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	used = int64(s[0].Value.Uint64() + s[3].Value.Uint64())
	for _, heap := range s[4:] {
		used -= int64(heap.Value.Uint64())
	}
	if limit = int64(s[1].Value.Uint64()); limit == math.MaxInt64 {
		limit = 0
	}
	return used, limit, s[2].Value.Uint64()
}

// Collect implements Heap.
func (processHeap) Collect() { runtime.GC() }
