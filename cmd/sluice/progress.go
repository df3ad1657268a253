package main

import (
	"context"
	"sync"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/local"
)

// How often progress is told: lines in a log, pictures on a terminal, and pictures while nothing moves.
const (
	lineEvery   = 3 * time.Second
	frameEvery  = 200 * time.Millisecond
	parkedEvery = time.Second
)

// progress tells on standard error how a run stands while it is worked on.
type progress struct {
	st    *local.State
	job   *run.Job
	watch *run.Watch
	out   teller

	mu     sync.Mutex
	speed  speed
	last   standing // of the last slice
	asleep bool
	parkAt time.Time // zero: until an answer comes
	holds  []hold    // while parked

	stop  context.CancelFunc
	ended chan struct{}
}

// teller is a way to show progress.
type teller interface {
	show(s standing, now time.Time)
	say(line string)      // something that must be told whatever happens
	every() time.Duration // how often show wants to be called
	close()
}

// progress makes the progress of a run.
func (a *app) progress(st *local.State, job *run.Job, watch *run.Watch, w work) *progress {
	p := &progress{st: st, job: job, watch: watch, ended: make(chan struct{})}
	p.last = standing{Total: job.Run.Sealed.Rows, Done: job.Run.Counts.Completed, Failed: job.Run.Counts.Failed, Cost: job.Run.Stats.CostMicros}
	switch {
	case w.Quiet:
		p.out = silent{a.stderr}
	case isTerminal(a.stderr):
		p.out = newDisplay(a.stderr, p.last.Total)
	default:
		p.out = &lines{w: a.stderr}
	}
	return p
}

func (p *progress) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		defer close(p.ended)
		p.loop(ctx)
	}()
}

func (p *progress) loop(ctx context.Context) {
	if p.out.every() == 0 {
		return
	}
	t := time.NewTimer(p.out.every())
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			s := p.standing(now)
			p.out.show(s, now)
			t.Reset(max(p.out.every(), parkedPause(s)))
		case <-ctx.Done():
			return
		}
	}
}

func parkedPause(s standing) time.Duration {
	if !s.Parked {
		return 0
	}
	return parkedEvery
}

func (p *progress) end() {
	p.stop()
	<-p.ended
	p.out.close()
}

func (p *progress) say(line string) { p.out.say(line) }

// parked notes that nothing moves until a time, and why.
func (p *progress) parked(at time.Time) {
	var waiting []hold
	left, err := run.BacklogOf(context.Background(), p.st.Store, p.job.Run)
	if err == nil { // it is only told
		for _, h := range left.Holds {
			waiting = append(waiting, holdOf(h))
		}
	}
	now := time.Now()
	p.mu.Lock()
	p.last = fromSnapshot(p.watch.Last(), p.last.Total, now)
	p.asleep, p.parkAt, p.holds = true, at, waiting
	p.mu.Unlock()
	s := p.standing(now)
	p.out.show(s, now)
}

func (p *progress) woken() {
	p.mu.Lock()
	p.asleep, p.parkAt, p.holds, p.speed = false, time.Time{}, nil, speed{}
	p.last.Holds, p.last.Held, p.last.Turning = nil, 0, 0
	p.mu.Unlock()
	p.out.show(p.standing(time.Now()), time.Now())
}

// standing is how the run stands now.
func (p *progress) standing(now time.Time) standing {
	snap, live := p.watch.Snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	if live {
		p.last = fromSnapshot(snap, p.last.Total, now)
		p.speed.note(now, p.last.Done+p.last.Failed)
	}
	s := p.last
	if p.asleep {
		s.Parked, s.ParkedUntil, s.Holds, s.Turning = true, p.parkAt, p.holds, 0
		s.Held = 0
		for _, h := range p.holds {
			s.Held += h.Rows
		}
		return s
	}
	s.Rate = p.speed.rate()
	s.Left = s.estimate(now)
	return s
}
