package call

import (
	"context"
	"errors"
	"sync"
)

// ErrAbandoned: the call that others shared ended without an answer.
var ErrAbandoned = errors.New("the call that this row shared was abandoned")

// Flight lets rows that make the identical call at the same time share one physical call: the first is the owner
// and makes it, the others follow and get what the owner gets, be it a result, a failure or a hold (H10).
type Flight struct {
	mu    sync.Mutex
	calls map[Digest]*Shared
}

// Shared is a call in flight.
type Shared struct {
	flight *Flight
	digest Digest
	done   chan struct{}
	answer Answer
	at     Cursor
	err    error
}

// Join returns the call in flight, and whether the caller is its owner. The owner must end it with Settle; a
// follower waits with Wait.
func (f *Flight) Join(d Digest) (s *Shared, owner bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.calls[d]; ok {
		return s, false
	}
	if f.calls == nil {
		f.calls = map[Digest]*Shared{}
	}
	s = &Shared{flight: f, digest: d, done: make(chan struct{}), err: ErrAbandoned}
	f.calls[d] = s
	return s, true
}

// Settle ends the call: what the followers get. The cursor says what follows where the call stays open.
func (s *Shared) Settle(a Answer, at Cursor, err error) {
	s.answer, s.at, s.err = a, at, err
	s.flight.mu.Lock()
	delete(s.flight.calls, s.digest)
	s.flight.mu.Unlock()
	close(s.done)
}

// Wait returns what the owner got. A follower whose context ends leaves alone.
func (s *Shared) Wait(ctx context.Context) (a Answer, at Cursor, err error) {
	select {
	case <-s.done:
		return s.answer, s.at, s.err
	case <-ctx.Done():
		return Answer{}, Cursor{}, context.Cause(ctx)
	}
}
