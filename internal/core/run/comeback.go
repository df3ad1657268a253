package run

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/core/sheet"
)

// wireAway gives the slice what it needs of the rows that wait at boundaries.
func (s *slice) wireAway() {
	s.away = newAway(s.ports.Store, s.job.Run.ID, s.shard, s.cp.Waits)
	s.pool.wakes = s.away.wakes
	if s.job.awaits {
		s.inbox = func(context.Context) { s.comeBack(true) }
	}
}

// comeBack brings rows back from the wait list whose time has come, and with look those whose events have been answered,
// as many as there is room for. It reports whether any came. A store that fails ends the slice.
func (s *slice) comeBack(look bool) bool {
	if s.away == nil || s.stopping() {
		return false
	}
	s.backMu.Lock()
	defer s.backMu.Unlock()
	n, err := s.takeDue(s.ctx, time.Now())
	if err == nil && look && s.job.awaits {
		var answered int
		answered, err = s.readInbox(s.ctx)
		n += answered
	}
	if n > 0 {
		s.pool.nudge()
	}
	if err != nil && s.ctx.Err() == nil { // else it is known why
		s.drain(fmt.Errorf("wait list: %w", err))
	}
	return n > 0
}

// takeDue brings the rows back that are due.
func (s *slice) takeDue(ctx context.Context, now time.Time) (int, error) {
	if next := s.away.wakes(); next.IsZero() || next.After(now) {
		return 0, nil
	}
	room, cursor := s.pool.room()
	if room <= 0 {
		return 0, nil
	}
	from, next, came := s.away.start(), time.Time{}, 0
	for w, err := range sheet.Waits(ctx, s.ports.Store, s.job.Run.ID, s.shard, from) {
		if err != nil {
			return came, err
		}
		if w.At.IsZero() || w.At.After(now) || room == 0 {
			next = w.At
			break
		}
		if w.Row >= cursor || s.away.isBack(w.Key()) {
			continue // a row that is still to be admitted comes by itself
		}
		from = w.Key()
		if s.rejoin(&w) {
			room--
			came++
		}
	}
	s.away.seen(from, next)
	return came, nil
}

// rejoin takes the row of an item of the wait list back into the pool.
func (s *slice) rejoin(w *sheet.Wait) bool {
	at := s.pool.rejoin(sheet.Pending{Row: w.Row, Index: w.Index, Input: w.Input})
	s.away.returned(w)
	return at == absent
}

// readInbox brings the rows back whose events have been answered. A row that is at work is called when it is not: its
// letter stays. One that a provider holds comes at once: the answer is more than what it waited for.
func (s *slice) readInbox(ctx context.Context) (int, error) {
	room, cursor := s.pool.room()
	var letters []sheet.Letter
	came := 0
	for l, err := range sheet.Inbox(ctx, s.ports.Store, s.job.Run.ID, s.shard) {
		if err != nil {
			return 0, err
		}
		if len(letters) >= room {
			break
		}
		if l.Row >= cursor || s.away.isBack(l.Key()) {
			continue
		}
		switch s.pool.recall(l.Row) {
		case absent:
			letters = append(letters, l)
		case waiting:
			s.away.read(&l)
			came++
		}
	}
	if len(letters) == 0 {
		return came, nil
	}
	listed, err := sheet.WaitsOf(ctx, s.ports.Store, s.job.Run.ID, s.shard, letters)
	if err != nil {
		return came, err
	}
	for i := range letters {
		l := &letters[i]
		w, ok := listed[l.Row]
		if !ok { // it is not on the list any more; the row itself will say why
			w = sheet.Wait{Row: l.Row}
			s.pool.rejoin(sheet.Pending{Row: l.Row})
		} else {
			s.rejoin(&w)
		}
		s.away.read(l)
		came++
	}
	return came, nil
}
