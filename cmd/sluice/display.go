package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// display is progress on a terminal: a bar, and under it a line for what is parked and for every provider that is
// closed.
type display struct {
	w       io.Writer
	refresh chan any
	bars    *mpb.Progress
	rows    *mpb.Bar

	mu    sync.Mutex
	s     standing
	now   time.Time
	notes []*note
	ended bool
}

// note is a line under the bar.
type note struct {
	bar  *mpb.Bar
	text string
}

func newDisplay(w io.Writer, total int64) *display {
	d := &display{w: w, refresh: make(chan any, 1)}
	d.bars = mpb.New(mpb.WithOutput(w), mpb.WithManualRefresh(d.refresh), mpb.WithWidth(120))
	d.rows = d.bars.New(max(total, 1), mpb.BarStyle(),
		mpb.BarPriority(0), mpb.BarFillerTrim(),
		mpb.PrependDecorators(decor.Any(d.text(func(s standing) string { return s.counts() + " " }))),
		mpb.AppendDecorators(decor.Any(d.text(func(s standing) string { return " " + s.pace() }))),
	)
	return d
}

func (d *display) text(of func(standing) string) decor.DecorFunc {
	return func(decor.Statistics) string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return of(d.s)
	}
}

func (d *display) every() time.Duration { return frameEvery }

func (d *display) show(s standing, now time.Time) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return
	}
	d.s, d.now = s, now
	d.setNotes(notesOf(s, now))
	d.mu.Unlock()
	d.rows.SetCurrent(min(s.Done+s.Failed, max(s.Total, 1)-1)) // the bar's own end would close the display
	d.draw(now)
}

func notesOf(s standing, now time.Time) []string {
	var texts []string
	if !s.ParkedUntil.IsZero() {
		texts = append(texts, fmt.Sprintf("parked until %s (in %s)", clock(s.ParkedUntil, now), span(s.ParkedUntil.Sub(now))))
	}
	for _, h := range s.Holds {
		texts = append(texts, h.text(now))
	}
	return texts
}

// setNotes makes the lines under the bar those texts, under the lock.
func (d *display) setNotes(texts []string) {
	for n, text := range texts {
		if n == len(d.notes) {
			d.notes = append(d.notes, d.newNote(n))
		}
		d.notes[n].text = text
	}
	for _, gone := range d.notes[len(texts):] {
		gone.bar.Abort(true)
	}
	d.notes = d.notes[:len(texts)]
}

func (d *display) newNote(n int) *note {
	line := &note{}
	line.bar = d.bars.New(1, mpb.NopStyle(), mpb.BarPriority(n+1),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			return "  " + line.text
		})))
	return line
}

func (d *display) draw(now time.Time) {
	select {
	case d.refresh <- now:
	default:
	}
}

// say writes a line above the bar.
func (d *display) say(line string) {
	if _, err := fmt.Fprintln(d.bars, line); err != nil { // the display has ended
		fmt.Fprintln(d.w, line)
		return
	}
	d.draw(time.Now())
}

// close takes the display away; the summary says the rest.
func (d *display) close() {
	d.mu.Lock()
	d.ended = true
	d.setNotes(nil)
	d.mu.Unlock()
	d.rows.Abort(true)
	d.draw(time.Now())
	d.bars.Shutdown()
}
