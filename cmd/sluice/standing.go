package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// longHold is how far away a provider's next turn must be to be worth telling: shorter ones are ordinary pacing.
const longHold = time.Second

// standing is how a run stands, as it is shown.
type standing struct {
	Total, Done, Failed int64
	Held, Turning       int
	Cost                int64 // millionths
	Rate                float64
	Left                time.Duration // 0: not known
	Answers, Asleep     int64         // rows that wait for answers, and rows that sleep
	Parked              bool
	ParkedUntil         time.Time // zero: until an answer comes
	Ending              bool      // the rows have ended; steps of finish are left
	Holds               []hold
	Halting             string
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
		Cost: snap.Stats.CostMicros, Ending: snap.Ending, Answers: snap.Waits.Answers, Asleep: snap.Waits.Asleep,
	}
	switch snap.Halting {
	case run.Paused:
		s.Halting = "pausing"
	case run.Cancelled:
		s.Halting = "cancelling"
	}
	for _, h := range snap.Holds {
		if h.Until.Sub(now) < longHold {
			continue
		}
		s.Holds = append(s.Holds, hold{Provider: h.Provider, Why: whyText(h.Why), Until: h.Until, Rows: h.Rows})
	}
	slices.SortFunc(s.Holds, func(a, b hold) int { return cmp.Compare(a.Provider, b.Provider) })
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
	if s.Answers > 0 {
		text += ", " + plural(s.Answers, "waits for an answer", "wait for answers")
	}
	if s.Asleep > 0 {
		text += ", " + plural(s.Asleep, "sleeps", "sleep")
	}
	if s.Halting != "" {
		text += ", " + s.Halting
	}
	return text
}

// state says what is going on besides rows; parked is how a park until a time is told. Empty: nothing is.
func (s standing) state(parked string) string {
	switch {
	case s.Parked && s.ParkedUntil.IsZero():
		return "parked until an answer comes"
	case s.Parked && s.Ending:
		return "finishing: " + parked
	case s.Parked:
		return parked
	case s.Ending:
		return "finishing"
	}
	return ""
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
		parts = append(parts, "cost "+sheet.Money(s.Cost))
	}
	return strings.Join(parts, ", ")
}

// holdOf is a hold as it is told.
func holdOf(h run.Hold) hold {
	return hold{Provider: h.Provider, Why: whyText(h.Why), Until: h.Until, Rows: h.Rows}
}

// whyText says in few words why somebody waits.
func whyText(w call.Why) string {
	code := strings.TrimPrefix(w.Code, "HTTP_")
	switch w.Reason {
	case call.RetryAfter, call.Cooldown:
		return cmp.Or(code, "held")
	case call.RateLimit:
		return "its limit is used up"
	case call.Concurrency:
		return "all its calls are in flight"
	case call.Backoff:
		return cmp.Or(code, "a failure") + ", tried again"
	case call.Credential:
		return "its credential is read again"
	case call.Identical:
		return "another run makes the same call"
	case call.Platform:
		return "the function that makes its calls is busy"
	case call.Boundary:
		return "its own wait comes first"
	}
	return "held"
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
