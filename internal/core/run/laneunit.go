package run

import (
	"slices"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
)

// batchLinger is how long a call of a tool with `batch` waits for company: the rows of a pool come within milliseconds of
// each other, and a request more costs more than a moment.
const batchLinger = 50 * time.Millisecond

// unit is what the gateway sends as one request: a call, or calls of a tool with `batch` that travel together.
type unit struct {
	turns  []*turn
	parcel *parcel
	sent   time.Time // when it was about to be dispatched
	asked  call.Attempt
}

// cohort is calls that travel together and with nobody else: those of a request that is to be repeated as it was, or of a
// part of one that was too large.
type cohort struct{ size int }

// compose puts the calls in the order of their places, so that the same calls together are always the same request.
func (u *unit) compose() call.Attempt {
	slices.SortFunc(u.turns, func(a, b *turn) int { return a.place.Compare(b.place) })
	attempts := make([]call.Attempt, len(u.turns))
	for i, t := range u.turns {
		attempts[i] = t.attempt
	}
	u.asked = call.Together(attempts)
	return u.asked
}

// units divides the queue, under the lock, into what may be sent as one request each. What waits for company is left out,
// and wait is for how long (0: until something changes). Alone says that every request is that of one call.
func (l *lane) units(now time.Time) (ready []*unit, alone bool, wait time.Duration) {
	f := &l.forming
	f.begin(l)
	for _, t := range l.queue {
		if len(f.all) >= batchSize && len(f.open)+len(f.bound) == 0 {
			break // enough for once
		}
		f.add(t)
	}
	for _, u := range f.all {
		left := f.waits(u, now)
		if left == 0 {
			f.ready = append(f.ready, u)
		} else if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}
	return f.ready, len(f.open)+len(f.bound) == 0, wait
}

// take removes the units from the queue that find a place, under the lock: each needs one, whatever it carries. It takes
// none if fewer than least do, since others have taken places meanwhile.
func (l *lane) take(units []*unit, least int, now time.Time) []*unit {
	paused := 0
	for _, u := range units {
		if u.turns[0].paused {
			paused++
		}
	}
	places, n := l.pool.unpauseSome(paused, least-(len(units)-paused)), 0
	for ; n < len(units); n++ {
		t := units[n].turns[0]
		if t.paused && places == 0 {
			break
		} else if t.paused {
			places--
		}
		t.paused = false
	}
	if n == 0 {
		return nil
	}
	taken := make([]*unit, n)
	for i, u := range units[:n] {
		taken[i] = &unit{turns: slices.Clone(u.turns)}
		for _, t := range u.turns {
			t.seq = -t.seq - 1 // taken
		}
	}
	l.queue = slices.DeleteFunc(l.queue, func(t *turn) bool { return t.seq < 0 })
	l.batching.send(now, taken)
	return taken
}

// forming puts turns together. The lane looks at its queue with every call that comes, and mostly cannot send: what it
// forms for that is used over and over, and is only good until the next look.
type forming struct {
	lane  *lane
	all   []*unit // in the order of their first turns
	ready []*unit
	open  map[key]*unit
	bound map[*cohort]*unit
	spare []*unit // all that there are
}

func (f *forming) begin(l *lane) {
	if f.lane == nil {
		*f = forming{lane: l, open: map[key]*unit{}, bound: map[*cohort]*unit{}}
	}
	f.all, f.ready = f.all[:0], f.ready[:0]
	clear(f.open)
	clear(f.bound)
}

// with begins a unit.
func (f *forming) with(t *turn) *unit {
	n := len(f.all)
	if n == len(f.spare) {
		f.spare = append(f.spare, &unit{})
	}
	u := f.spare[n]
	u.turns = append(u.turns[:0], t)
	f.all = append(f.all, u)
	return u
}

// key is what calls have in common that may travel together.
type key struct {
	tool   *mapspec.Tool
	number int // of the attempt, where the batch has to stay as it is
}

func (f *forming) add(t *turn) {
	switch {
	case t.tool.Batch == nil:
		f.with(t)
	case t.cohort != nil:
		if u := f.bound[t.cohort]; u != nil {
			u.turns = append(u.turns, t)
		} else {
			f.bound[t.cohort] = f.with(t)
		}
	default:
		k := key{tool: t.tool}
		if binds(t.tool) {
			k.number = t.attempt.Number
		}
		if u := f.open[k]; u != nil && len(u.turns) < f.lane.most(t.tool) {
			u.turns = append(u.turns, t)
		} else {
			f.open[k] = f.with(t)
		}
	}
}

// waits is how long a unit waits for company yet; -1: until it is complete.
func (f *forming) waits(u *unit, now time.Time) time.Duration {
	first := u.turns[0]
	switch {
	case first.tool.Batch == nil:
		return 0
	case first.cohort != nil:
		if len(u.turns) < first.cohort.size {
			return -1
		}
		return 0
	case len(u.turns) >= f.lane.most(first.tool):
		return 0
	}
	oldest := first.since
	for _, t := range u.turns {
		if t.since.Before(oldest) {
			oldest = t.since
		}
	}
	return max(0, oldest.Add(max(f.lane.batching.linger, batchLinger)).Sub(now))
}

// binds reports whether calls of a tool that were sent together must be sent together again: its provider recognises a
// repeated request by the fence alone.
func binds(t *mapspec.Tool) bool { return t.Batch != nil && t.Fence != "" && !t.Idempotent }

// most is how many calls of a tool go into one request.
func (l *lane) most(t *mapspec.Tool) int {
	if n, ok := l.sizes[t]; ok {
		return n
	}
	return t.Batch.Size
}

// fits learns, under the lock, how many calls the provider takes at once: half of what it found too large, and a little
// more with every request of that size that it answers.
func (l *lane) fits(u *unit, a call.Answer) {
	tool, n := u.turns[0].tool, len(u.turns)
	switch {
	case tool.Batch == nil || !a.Dispatched:
	case a.Split:
		l.sizes[tool] = min(l.most(tool), max(1, n/2))
	case a.Outcome == call.Result && n >= l.most(tool) && n < tool.Batch.Size:
		l.sizes[tool] = min(tool.Batch.Size, n+max(1, n/8))
	}
}

// halve puts a batch that was too large back into the queue, to be sent in two parts.
func (l *lane) halve(u *unit) {
	half := (len(u.turns) + 1) / 2
	for _, part := range [][]*turn{u.turns[:half], u.turns[half:]} {
		c := &cohort{size: len(part)}
		for _, t := range part {
			t.cohort = c
		}
	}
	l.again(u)
}

// cohortOf finds, under the lock, those that a bound call travels with.
func (l *lane) cohortOf(b *call.Batch) *cohort {
	if b == nil {
		return nil
	}
	c := l.cohorts[b.ID]
	if c == nil {
		c = &cohort{size: b.Size}
		l.cohorts[b.ID] = c
	}
	return c
}
