package run

import (
	"context"
	"errors"
	"time"

	"sluice/internal/core/sheet"
)

// What is asked of a run reaches its slices through one small item, which each of them looks at when it begins and about
// once a second after that. A cancellation interrupts every wait and every exchange at once; what they have come to by
// then is saved (R10). A pause lets the calls under way come to their end.

// errCancelled ends the waits and exchanges of a slice whose run is cancelled. It is no failure.
var errCancelled = errors.New("the run is cancelled")

// orders is what a slice knows of what is asked of it, guarded by its mutex.
type orders struct {
	asked  *sheet.Control
	cancel bool
	pause  *sheet.Order // why the run is to pause
	own    bool         // the pause is this slice's own, and is not in the control item yet
}

// watchControl looks at what is asked of the run, and at the shard's inbox, until ctx ends. It is the only poller of a slice.
func (s *slice) watchControl(ctx context.Context) {
	tick := time.NewTicker(s.set.Look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if asked, err := sheet.LoadControl(ctx, s.ports.Store, s.job.known()); err == nil {
			s.obey(asked)
		} // else the store is away, of which others hear sooner
		if s.inbox != nil {
			s.inbox(ctx)
		}
		_ = s.tellPause(ctx) // close tries again, and its failure counts
	}
}

// obey does what is asked.
func (s *slice) obey(asked *sheet.Control) {
	s.ordersMu.Lock()
	s.orders.asked = asked
	cancel := asked.Cancel != nil && !s.orders.cancel
	pause := asked.Pause != nil && s.orders.pause == nil
	if cancel {
		s.orders.cancel = true
	}
	if pause {
		s.orders.pause = asked.Pause
	}
	s.ordersMu.Unlock()
	switch {
	case cancel:
		s.drain(errCancelled) // first, so that what the interrupted rows report is not taken for a failure
		s.stop(errCancelled)
	case pause:
		s.drain(nil)
	}
}

// asked is what was last seen to be asked of the run.
func (s *slice) asked() *sheet.Control {
	s.ordersMu.Lock()
	defer s.ordersMu.Unlock()
	return s.orders.asked
}

// pauseFor ends the slice, with the outcome Paused: calls under way come to their end, nothing else is dispatched. The
// run's other shards hear of it, its record says the reason, and it goes on when somebody says so.
func (s *slice) pauseFor(reason string) {
	s.ordersMu.Lock()
	first := s.orders.pause == nil
	if first {
		s.orders.pause, s.orders.own = &sheet.Order{At: time.Now().UTC(), Reason: reason}, true
	}
	s.ordersMu.Unlock()
	if first {
		s.drain(nil)
	}
}

// tellPause puts the slice's own pause where the run's other slices see it.
func (s *slice) tellPause(ctx context.Context) error {
	s.ordersMu.Lock()
	order, own := s.orders.pause, s.orders.own
	s.ordersMu.Unlock()
	if !own {
		return nil
	}
	_, err := sheet.Ask(ctx, s.ports.Store, s.job.known(), func(c *sheet.Control) bool {
		if c.Pause != nil {
			return false
		}
		c.Pause = order
		return true
	})
	if err == nil {
		s.ordersMu.Lock()
		s.orders.own = false
		s.ordersMu.Unlock()
	}
	return err
}

// halt is the outcome that was asked for; empty: none.
func (s *slice) halt() Outcome {
	s.ordersMu.Lock()
	defer s.ordersMu.Unlock()
	switch {
	case s.orders.cancel:
		return Cancelled
	case s.orders.pause != nil:
		return Paused
	}
	return ""
}
