package run

import (
	"time"

	"sluice/internal/core/sheet"
)

// room is how many rows of the wait list may come back, under the lock: those that come back count as held (Q9).
func (p *pool) roomLocked() int {
	if p.draining || p.failed != nil {
		return 0
	}
	return p.maxWaiting - p.held.Len() - p.turning
}

// room is how many rows of the wait list may come back now, and the first row that was never admitted.
func (p *pool) room() (rows int, cursor int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roomLocked(), p.cursor
}

// listed is when the first row of the wait list may come back, under the lock; zero: none by time, or there is no room.
func (p *pool) listed() time.Time {
	if p.roomLocked() <= 0 {
		return time.Time{}
	}
	return p.wakes()
}

// sooner is the earlier of two times of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// presence is where a row is.
type presence int

const (
	absent  presence = iota
	atWork           // or turning
	waiting          // in the retry queue
)

// rejoin takes a row back whose time has come, as a retry (Q1). A row that is here already is not taken twice.
func (p *pool) rejoin(row sheet.Pending) presence {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.whereis(row.Row); at != absent {
		return at
	}
	now := time.Now()
	row.Until = now
	p.held.resume(&task{Pending: row, heldAt: now})
	return absent
}

// nudge starts what has come back.
func (p *pool) nudge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feed()
	p.tell()
}

// recall makes a held row due, because what it waits for has been answered otherwise, and says where the row was.
func (p *pool) recall(row int64) presence {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.bring(row, time.Now())
	return p.whereis(row)
}

func (p *pool) whereis(row int64) presence {
	if _, busy := p.tasks[row]; busy {
		return atWork
	}
	if p.held.rows[row] != nil {
		return waiting
	}
	return absent
}
