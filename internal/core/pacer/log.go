package pacer

import "slices"

// maxRuns bounds the log of a scope. A run takes some 30 bytes in the item.
const maxRuns = 64

// run is count grants, every nanoseconds apart.
type run struct{ start, every, count int64 }

func (r run) last() int64          { return r.start + (r.count-1)*r.every }
func (r run) at(i int64) int64     { return r.start + i*r.every }
func (r run) single() bool         { return r.count == 1 }
func (r run) follows(t int64) bool { return r.last()+r.every == t }

// sum adds up the distances of the grants from base. It is only compared, and may be too large for integers.
func (r run) sum(base int64) float64 {
	n := float64(r.count)
	return n*float64(r.start-base) + float64(r.every)*n*(n-1)/2
}

// grantLog is what was granted, oldest first, never out of order.
type grantLog []run

func (l grantLog) total() (n int64) {
	for _, r := range l {
		n += r.count
	}
	return n
}

// add appends one grant at t, which is not before the last one.
func (l grantLog) add(t int64) grantLog {
	if len(l) == 0 {
		return append(l, run{start: t, count: 1})
	}
	tail := &l[len(l)-1]
	switch {
	case tail.single():
		tail.every = t - tail.start
		tail.count = 2
	case tail.follows(t):
		tail.count++
	case tail.count == 2: // a pair by accident: its second may begin the next run
		second := tail.last()
		tail.count, tail.every = 1, 0
		return append(l, run{start: second, every: t - second, count: 2})
	default:
		return append(l, run{start: t, count: 1})
	}
	return l
}

// trim forgets what was granted before t.
func (l grantLog) trim(t int64) grantLog {
	i := 0
	for i < len(l) && l[i].last() < t {
		i++
	}
	l = l[i:]
	if len(l) > 0 && l[0].start < t && l[0].every > 0 {
		gone := (t - l[0].start + l[0].every - 1) / l[0].every
		l[0].start += gone * l[0].every
		l[0].count -= gone
	}
	return l
}

// compact merges neighbours until the log is short enough, each time those two whose merger adds the least delay.
func (l grantLog) compact(limit int) grantLog {
	for len(l) > limit {
		best, cost := 0, -1.0
		for i := range len(l) - 1 {
			a, b := l[i], l[i+1]
			delay := max(merge(a, b).sum(a.start)-a.sum(a.start)-b.sum(a.start), 0)
			if cost < 0 || delay < cost {
				best, cost = i, delay
			}
		}
		l[best] = merge(l[best], l[best+1])
		l = slices.Delete(l, best+1, best+2)
	}
	return l
}

// merge is one run that replaces two: as many grants, none of them counted earlier than it was given, the last one
// exactly. Counted backwards from the last one, the i-th may lie at most every*i before it; the bound is tightest at
// an end of one of the two runs, because between the ends it moves in one direction.
func merge(a, b run) run {
	end, n := b.last(), a.count+b.count
	every := (end - a.last()) / b.count
	if b.count > 1 {
		every = min(every, b.every)
	}
	if n > 1 {
		every = min(every, (end-a.start)/(n-1))
	}
	return run{start: end - (n-1)*every, every: every, count: n}
}

// cursor walks the log at a fixed number of grants behind its end.
type cursor struct {
	skip   int64 // grants still to be added before anything is that far back
	run    int
	offset int64
}

// behind returns the cursor at the n-th grant from the end (1 is the last).
func (l grantLog) behind(n int64) cursor {
	total := l.total()
	if total < n {
		return cursor{skip: n - total}
	}
	c := cursor{offset: total - n}
	for c.run < len(l) && c.offset >= l[c.run].count {
		c.offset -= l[c.run].count
		c.run++
	}
	return c
}

// at is the moment of the grant under the cursor. The log may have grown since the cursor was made, and its last
// run may have been split; the order of what is in it stays.
func (l grantLog) at(c *cursor) (int64, bool) {
	if c.skip > 0 {
		return 0, false
	}
	for c.run < len(l) && c.offset >= l[c.run].count {
		c.offset -= l[c.run].count
		c.run++
	}
	if c.run >= len(l) {
		return 0, false
	}
	return l[c.run].at(c.offset), true
}

// advance follows one added grant.
func (c *cursor) advance() {
	if c.skip > 0 {
		c.skip--
		return
	}
	c.offset++
}
