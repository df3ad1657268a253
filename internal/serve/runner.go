package serve

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice/internal/active"
	"sluice/internal/core/gateway"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
	"sluice/internal/local"
)

// Waits between attempts at a run that cannot be worked on now, such as while the disk is full.
const (
	firstAgain = 5 * time.Second
	lastAgain  = 5 * time.Minute
	// lookEvery is how often runs are looked for that nobody works on: their process has died.
	lookEvery = time.Minute
)

// Runner works on runs. It is what starts executions (start.Executions), and what hears of what is asked of them (api.Kicker).
type Runner struct {
	State     *local.State
	Secrets   gateway.Secrets
	UserAgent string
	URL       string // where people reach this server; empty: events have no link
	Log       *slog.Logger

	ctx    context.Context // ends when everything stops at once
	stop   chan struct{}   // closed: park
	wg     sync.WaitGroup
	mu     sync.Mutex
	atWork map[string]*task
	parked bool // nothing is taken up any more
}

// task is a run that this process works on.
type task struct{ kicked bool }

// Begin takes up what was at work when the process before this one stopped, and goes on looking for such runs until ctx ends or
// Park is called. A canceled ctx stops everything at once; what was saved stays.
func (r *Runner) Begin(ctx context.Context) error {
	r.ctx, r.stop, r.atWork = ctx, make(chan struct{}), map[string]*task{}
	if err := r.look(ctx); err != nil {
		return err
	}
	r.wg.Go(func() {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if err := r.look(ctx); err != nil {
					r.Log.Error("looking for runs", slog.Any(edge.KeyError, err))
				}
			case <-r.stop:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// look takes up the runs that the API has started and that have not ended.
func (r *Runner) look(ctx context.Context) error {
	for e, err := range active.All(ctx, r.State.Store.Table) {
		if err != nil {
			return err
		}
		rec, err := sheet.Load(ctx, r.State.Store, e.Run)
		if errors.Is(err, sheet.ErrNoRun) { // its start was cut off, or is under way
			continue
		}
		var asked *sheet.Control
		if err == nil {
			asked, err = sheet.LoadControl(ctx, r.State.Store, rec.ID)
		}
		switch {
		case err != nil:
			return err
		case asked.Extends(rec), goesOn(rec, asked):
			r.take(e.Run, false)
		case rec.Status.Ended():
			if err := active.Ended(ctx, r.State.Store, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// goesOn reports whether there is something to do for the run as it stands.
func goesOn(rec *sheet.Run, asked *sheet.Control) bool {
	return !rec.Status.Ended() && (asked.Cancel != nil || asked.Retries() || asked.Pause == nil || rec.Status != sheet.Paused)
}

// Park lets calls under way come to their end, saves everything and takes nothing up any more. Wait returns when that is done.
func (r *Runner) Park() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.parked {
		r.parked = true
		close(r.stop)
	}
}

// Wait waits until no run is at work any more.
func (r *Runner) Wait() { r.wg.Wait() }

// Start implements start.Executions: the run is listed as active by its starter.
func (r *Runner) Start(_ context.Context, id string, _ int) error {
	r.take(id, true)
	return nil
}

// Kick implements api.Kicker. Who works on the run sees by itself what is asked of it; where nobody does, the run is taken up,
// which also makes its record true.
func (r *Runner) Kick(ctx context.Context, id string) error {
	rec, err := sheet.Load(ctx, r.State.Store, id)
	if err != nil {
		return err
	}
	asked, err := sheet.LoadControl(ctx, r.State.Store, id)
	if err != nil || rec.Status.Ended() && !asked.Extends(rec) {
		return err
	}
	if err := active.Add(ctx, r.State.Store.Table, id); err != nil { // it may have ended, and goes on
		return err
	}
	r.take(id, true)
	return nil
}

// take works on the run in the background. A run that is at work already is looked at once more afterwards, if it is kicked:
// what was asked for may have come too late for who is just ending.
func (r *Runner) take(id string, kick bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.atWork[id]; t != nil {
		t.kicked = t.kicked || kick
		return
	}
	if r.parked {
		return
	}
	t := &task{}
	r.atWork[id] = t
	r.wg.Go(func() {
		for wait := firstAgain; ; wait = min(2*wait, lastAgain) {
			again := r.attempt(id)
			r.mu.Lock()
			if again = again && !r.parked; !again && (!t.kicked || r.parked) {
				delete(r.atWork, id)
				r.mu.Unlock()
				return
			}
			kicked := t.kicked
			t.kicked = false
			r.mu.Unlock()
			if kicked {
				wait = firstAgain / 2
				continue
			}
			select {
			case <-time.After(wait):
			case <-r.stop:
			case <-r.ctx.Done():
			}
		}
	})
}

// attempt works on a run until it has ended or waits for somebody. It reports whether that is to be tried again.
func (r *Runner) attempt(id string) (again bool) {
	if r.ctx.Err() != nil {
		return false
	}
	rec, err := r.work(id)
	line := []any{slog.String(edge.KeyRun, id)}
	if rec != nil {
		line = append(line, slog.String(edge.KeyStatus, string(rec.Status)))
	}
	switch {
	case err == nil, errors.Is(err, local.ErrHalted):
		if rec.Error != "" {
			line = append(line, slog.String(edge.KeyError, rec.Error))
		}
		r.Log.Info("run", line...)
		return false
	case errors.Is(err, local.ErrStopped), errors.Is(err, local.ErrAtWork), r.ctx.Err() != nil:
		return false
	case errors.Is(err, sheet.ErrNoRun):
		return false
	}
	r.Log.Error("run cannot go on now", append(line, slog.Any(edge.KeyError, err))...)
	return true
}
