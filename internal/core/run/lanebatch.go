package run

import (
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
)

// Where every batch is billed, and lasts as long as its slowest call, calls are sent when enough of them are there, and
// never more than their provider can take: what travels in vain is billed as well.

const (
	// A batch of enough calls waits no longer than the linger, one of fewer patience times as long.
	enough   = 16
	patience = 16
	// Batches that take longer than longBatch wait for company for a part of what they take, up to longest.
	longBatch     = 2 * time.Second
	partOfLong    = 4
	longestLinger = 2500 * time.Millisecond
	// longestWindow is the longest that is counted here.
	longestWindow = 2 * time.Minute
)

// batching decides how many calls of a lane are sent when. The zero batching sends all that there is at once. Its fields
// are guarded by the lane's mutex.
type batching struct {
	linger  time.Duration
	limits  []window      // but for very long ones
	parcels []*parcel     // sent within the longest of the limits, oldest first
	flying  int           // batches under way
	last    time.Time     // when the last batch was sent
	back    time.Time     // when the last answers came: their rows are about to leave their places
	took    time.Duration // what a batch takes, smoothed
}

// window is a limit as it is kept.
type window struct {
	rate  int
	per   time.Duration
	short bool // it is waited for in the slice
}

// parcel is what was sent at one moment, without what came back unsent.
type parcel struct {
	at    time.Time
	calls int
}

func newBatching(p *mapspec.Provider, linger, budget time.Duration) batching {
	b := batching{linger: linger}
	for _, l := range p.Limits {
		if per := (pacer.Rule{Rate: l.Rate, Per: l.Per}).Window(); linger > 0 && per <= longestWindow {
			b.limits = append(b.limits, window{l.Rate, per, l.Per <= budget})
		}
	}
	return b
}

// room is how many of the calls that wait may be sent now by what this lane has sent itself, or how long they wait until
// as many may as there are, or as the limits allow at once: the remains of a window are not worth a batch. The gateway
// would refuse what is more; whoever else shares the limits only makes it fewer. A long wait is the gateway's to name: it
// is asked with one call, unless a batch is under way that brings the answer.
func (b *batching) room(now time.Time, waiting int) (calls int, wait time.Duration) {
	calls = batchSize
	for _, w := range b.limits {
		free, most := w.free(now, b.parcels), min(waiting, w.batch())
		switch {
		case w.short && free < most:
			wait = max(wait, w.frees(now, b.parcels, most-free))
		case w.short:
			free = min(free, w.batch())
		case !w.short && free <= 0 && b.flying > 0:
			wait = max(wait, w.frees(now, b.parcels, 1-free))
		case !w.short:
			free = max(free, 1)
		}
		calls = min(calls, free)
	}
	return calls, wait
}

// batch is how many calls of a window travel together: all, or an equal part of them, so that nothing remains.
func (w window) batch() int {
	parts := (w.rate + batchSize - 1) / batchSize
	return (w.rate + parts - 1) / parts
}

// free is how many calls the window has left for this lane.
func (w window) free(now time.Time, parcels []*parcel) int {
	n := w.rate
	for _, p := range parcels {
		if now.Sub(p.at) < w.per {
			n -= p.calls
		}
	}
	return n
}

// frees is how long it lasts until so many more calls may be sent.
func (w window) frees(now time.Time, parcels []*parcel, calls int) (wait time.Duration) {
	for _, p := range parcels {
		if left := p.at.Add(w.per).Sub(now); left > 0 && calls > 0 {
			calls -= p.calls
			wait = left
		}
	}
	return wait
}

// company is how many of the calls that wait go together, and how long they should wait for others, so that a batch is
// worth what it costs; most is how many can be sent. They wait for nothing where no others can come.
func (l *lane) company(now time.Time, most int) (calls int, wait time.Duration) {
	b := &l.batching
	if b.linger <= 0 {
		return 1, 0
	}
	paused := 0
	for _, t := range l.queue {
		if t.paused {
			paused++
		}
	}
	places, alone := l.pool.places(len(l.queue)-paused, paused)
	calls, since := min(len(l.queue)-paused+min(paused, places), most), l.queue[0].since
	switch {
	case calls >= most || alone:
		return calls, 0
	case b.took > longBatch:
		return calls, later(since, b.last).Add(min(b.took/partOfLong, longestLinger)).Sub(now)
	case calls >= min(enough, most):
		return calls, later(since, b.back).Add(b.linger).Sub(now)
	}
	return calls, later(since, b.last).Add(patience * b.linger).Sub(now)
}

// gathers reports whether a call that comes gives its row's place up, so that the rows of the next batch gather while the
// calls of this one are under way.
func (b *batching) gathers(waiting int) bool { return b.linger > 0 && waiting < 2*batchSize }

// send books a batch that is sent now.
func (b *batching) send(now time.Time, batch []*unit) {
	b.last = now
	b.flying++
	p := &parcel{now, len(batch)}
	for _, u := range batch {
		u.parcel = p
	}
	if len(b.limits) == 0 {
		return
	}
	var longest time.Duration
	for _, limit := range b.limits {
		longest = max(longest, limit.per)
	}
	for len(b.parcels) > 0 && now.Sub(b.parcels[0].at) >= longest {
		b.parcels = b.parcels[1:]
	}
	b.parcels = append(b.parcels, p)
}

// unsent books that a request of a batch was not sent after all.
func (l *lane) unsent(u *unit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.parcel.calls--
}

// ended books the end of a batch.
func (l *lane) ended(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batching.flying--; took > 0 {
		l.batching.took = (3*l.batching.took + took) / 4
	}
	l.wake()
}
