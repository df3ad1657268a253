package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// silent tells only what must be told.
type silent struct{ w io.Writer }

func (silent) show(standing, time.Time) {}
func (s silent) say(line string)        { fmt.Fprintln(s.w, line) }
func (silent) every() time.Duration     { return 0 }
func (silent) close()                   {}

// lines tells progress as lines of a log: one when something has changed.
type lines struct {
	w    io.Writer
	mu   sync.Mutex
	last string
}

func (l *lines) every() time.Duration { return lineEvery }
func (l *lines) close()               {}

func (l *lines) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, line)
}

func (l *lines) show(s standing, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := []string{s.counts()}
	if state := s.state("parked until " + clock(s.ParkedUntil, now)); state != "" {
		parts = append(parts, state)
	}
	for _, h := range s.Holds {
		parts = append(parts, h.text(now))
	}
	what := strings.Join(parts, "; ")
	if what == l.last {
		return
	}
	l.last = what
	if pace := s.pace(); pace != "" {
		parts = append(parts[:1:1], append([]string{pace}, parts[1:]...)...)
	}
	fmt.Fprintf(l.w, "%s %s\n", now.Local().Format("15:04:05"), strings.Join(parts, "; "))
}
