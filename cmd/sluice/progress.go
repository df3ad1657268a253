package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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

// longHold is how far away a provider's next turn must be to be worth telling: shorter ones are ordinary pacing.
const longHold = time.Second

// progress tells on standard error how a run stands while it is worked on.
type progress struct {
	st    *local.State
	job   *run.Job
	watch *run.Watch
	out   teller

	mu     sync.Mutex
	speed  speed
	last   standing // of the last slice
	parkAt time.Time
	holds  []hold // while parked

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
	if s.ParkedUntil.IsZero() {
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
	held, err := local.Holds(context.Background(), p.st.Store, p.job.Run)
	if err == nil { // it is only told
		for _, h := range held {
			waiting = append(waiting, hold{Provider: h.Provider, Until: h.Until, Rows: h.Rows, Why: "held"})
		}
	}
	now := time.Now()
	p.mu.Lock()
	p.last = fromSnapshot(p.watch.Last(), p.last.Total, now)
	p.parkAt, p.holds = at, p.reasons(waiting)
	p.mu.Unlock()
	s := p.standing(now)
	p.out.show(s, now)
}

// reasons gives holds the reason that the slice last knew, such as 429.
func (p *progress) reasons(list []hold) []hold {
	for i := range list {
		for _, known := range p.last.Holds {
			if known.Provider == list[i].Provider {
				list[i].Why = known.Why
			}
		}
	}
	return list
}

func (p *progress) woken() {
	p.mu.Lock()
	p.parkAt, p.holds, p.speed = time.Time{}, nil, speed{}
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
	if !p.parkAt.IsZero() {
		s.ParkedUntil, s.Holds, s.Turning = p.parkAt, p.holds, 0
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

// estimate is how long the rest may take: at the present rate, and not less than what rows are held for.
func (s standing) estimate(now time.Time) time.Duration {
	d := left(s.Total-s.Done-s.Failed, s.Rate)
	if d == 0 {
		return 0
	}
	for _, h := range s.Holds {
		d = max(d, h.Until.Sub(now))
	}
	return d
}

// standing is how a run stands, as it is shown.
type standing struct {
	Total, Done, Failed int64
	Held, Turning       int
	Cost                int64 // millionths
	Rate                float64
	Left                time.Duration // 0: not known
	ParkedUntil         time.Time
	Holds               []hold
}

// hold is a provider that is not to be asked before a time.
type hold struct {
	Provider, Why string
	Until         time.Time
	Rows          int
}

func fromSnapshot(snap run.Snapshot, total int64, now time.Time) standing {
	s := standing{
		Total: total, Done: snap.Counts.Completed, Failed: snap.Counts.Failed, Held: snap.Held, Turning: snap.Turning,
		Cost: snap.Stats.CostMicros,
	}
	for _, h := range snap.Holds {
		if h.Until.Sub(now) < longHold {
			continue
		}
		why := "its limit is used up"
		if h.Reason != nil {
			why = strings.TrimPrefix(h.Reason.Code, "HTTP_")
		}
		s.Holds = append(s.Holds, hold{Provider: h.Provider, Why: why, Until: h.Until, Rows: h.Rows})
	}
	slices.SortFunc(s.Holds, func(a, b hold) int { return cmp.Compare(a.Provider, b.Provider) })
	return s
}

// waiting is the number of rows that are admitted and cannot go on.
func (s standing) waiting() int { return s.Held + s.Turning }

// counts says the numbers in words.
func (s standing) counts() string {
	ended := s.Done + s.Failed
	text := fmt.Sprintf("%s of %s rows", number(ended), number(s.Total))
	if s.Total > 0 {
		text += fmt.Sprintf(" (%d%%)", ended*100/s.Total)
	}
	if s.Failed > 0 {
		text += ", " + number(s.Failed) + " failed"
	}
	if s.Held > 0 {
		text += fmt.Sprintf(", %s held", number(int64(s.Held)))
	}
	if s.Turning > 0 {
		text += fmt.Sprintf(", %s waiting", number(int64(s.Turning)))
	}
	return text
}

// pace says how fast it goes and what it has cost.
func (s standing) pace() string {
	var parts []string
	if s.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%.1f rows/s", s.Rate))
	}
	if s.Left > 0 {
		parts = append(parts, "about "+span(s.Left)+" left")
	}
	if s.Cost > 0 {
		parts = append(parts, "cost "+money(s.Cost))
	}
	return strings.Join(parts, ", ")
}

func (h hold) text(now time.Time) string {
	s := fmt.Sprintf("%s: %s until %s", clean(h.Provider), clean(h.Why), clock(h.Until, now))
	if h.Rows > 0 {
		s += " (" + plural(int64(h.Rows), "row", "rows") + " waiting)"
	}
	return s
}

// speed measures the rows that end in the last half minute.
type speed struct{ samples []sample }

type sample struct {
	at    time.Time
	ended int64
}

const speedWindow = 30 * time.Second

func (v *speed) note(now time.Time, ended int64) {
	v.samples = append(v.samples, sample{now, ended})
	for len(v.samples) > 2 && now.Sub(v.samples[1].at) >= speedWindow {
		v.samples = v.samples[1:]
	}
}

// rate is rows a second; 0: not known, or nothing moves.
func (v *speed) rate() float64 {
	if len(v.samples) < 2 {
		return 0
	}
	first, last := v.samples[0], v.samples[len(v.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took < 0.5 || last.ended <= first.ended {
		return 0
	}
	return float64(last.ended-first.ended) / took
}

// farAway bounds an estimate that is worth showing.
const farAway = 100 * 24 * time.Hour

func left(rows int64, rate float64) time.Duration {
	if rows <= 0 || rate <= 0 {
		return 0
	}
	seconds := float64(rows) / rate
	if seconds > farAway.Seconds() {
		return 0
	}
	return max(time.Duration(seconds*float64(time.Second)), time.Second)
}
