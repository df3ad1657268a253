package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// display is progress on a terminal: a bar, and under it a line for a park and for every provider that is closed.
type display struct {
	w       io.Writer
	refresh chan any
	bars    *mpb.Progress
	rows    *mpb.Bar

	mu    sync.Mutex // one change at a time
	notes []*mpb.Bar
	ended bool

	// What the bars show. It has its own lock, because bars are drawn while a change waits for them.
	textMu sync.Mutex
	s      standing
	texts  []string // of the notes
}

// barWidth is the most that a display needs.
const barWidth = 120

func newDisplay(w io.Writer, total int64, options ...mpb.ContainerOption) *display {
	d := &display{w: w, refresh: make(chan any, 1)}
	d.bars = mpb.New(append(options, mpb.WithOutput(w), mpb.WithManualRefresh(d.refresh), mpb.WithWidth(barWidth))...)
	d.rows = d.bars.New(max(total, 1), mpb.BarStyle(), mpb.BarPriority(0),
		mpb.PrependDecorators(d.text(func() string { return d.s.counts() + " " })),
		mpb.AppendDecorators(d.text(func() string { return " " + d.s.pace() })),
	)
	return d
}

// text is a part of a bar that shows what of returns.
func (d *display) text(of func() string) decor.Decorator {
	return decor.Any(func(decor.Statistics) string {
		d.textMu.Lock()
		defer d.textMu.Unlock()
		return of()
	})
}

func (d *display) every() time.Duration { return frameEvery }

func (d *display) show(s standing, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	texts := notesOf(s, now)
	d.textMu.Lock()
	d.s, d.texts = s, texts
	d.textMu.Unlock()
	d.setNotes(len(texts))
	d.rows.SetCurrent(min(s.Done+s.Failed, max(s.Total, 1)-1)) // a full bar would close the display
	d.draw()
}

func notesOf(s standing, now time.Time) []string {
	var texts []string
	if state := s.state(fmt.Sprintf("parked until %s (in %s)", clock(s.ParkedUntil, now), span(s.ParkedUntil.Sub(now)))); state != "" {
		texts = append(texts, state)
	}
	for _, h := range s.Holds {
		texts = append(texts, h.text(now))
	}
	return texts
}

// setNotes makes the number of lines under the bar n.
func (d *display) setNotes(n int) {
	for len(d.notes) < n {
		at := len(d.notes)
		d.notes = append(d.notes, d.bars.New(1, mpb.NopStyle(), mpb.BarPriority(at+1), mpb.PrependDecorators(d.text(func() string {
			if at >= len(d.texts) {
				return "" // about to go
			}
			return "  " + d.texts[at]
		}))))
	}
	for _, gone := range d.notes[n:] {
		gone.Abort(true)
	}
	d.notes = d.notes[:n]
}

// draw asks for a picture; if one is asked for already, it will do.
func (d *display) draw() {
	select {
	case d.refresh <- time.Now():
	default:
	}
}

// say writes a line above the bar.
func (d *display) say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		fmt.Fprintln(d.w, line)
		return
	}
	fmt.Fprintln(d.bars, line)
	d.draw()
}

// close takes the display away; the summary says the rest.
func (d *display) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.setNotes(0)
	d.rows.Abort(true)
	d.draw()
	d.bars.Wait()
}
