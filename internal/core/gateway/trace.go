package gateway

import (
	"time"

	"sluice/internal/core/call"
)

// Trace is the way of a call's retry through the gateway: when it came to each phase, counted from when its permit was
// first asked for (R14). It names the tool and nobody: no request, no receipt, no customer.
type Trace struct {
	Tool    string
	Outcome call.Outcome
	Status  int // of the answer; 0: there was none

	Granted    time.Duration // it had a permit
	Slept      time.Duration // the permit's moment had come
	Checked    time.Duration // the permit was found to be valid still
	Dispatched time.Duration // the request was handed to the sender
	Answered   time.Duration // the exchange had come to its end
	Void       int           // permits that it had before and that were void
}

// tracing is a trace under way. A nil one takes no notes.
type tracing struct {
	Trace
	asked time.Time
}

// follow begins the trace of a retry. Calls that have met nothing leave none.
func (e *Executor) follow(j *job) {
	if e.Trace != nil && j.Retry {
		j.trace = &tracing{Trace: Trace{Tool: j.Attempt.Tool}}
	}
}

// note writes down when the phase was reached.
func (t *tracing) note(phase func(*Trace) *time.Duration) {
	if t != nil {
		*phase(&t.Trace) = time.Since(t.asked)
	}
}

// The phases, as note takes them.
func granted(t *Trace) *time.Duration    { return &t.Granted }
func slept(t *Trace) *time.Duration      { return &t.Slept }
func checked(t *Trace) *time.Duration    { return &t.Checked }
func dispatched(t *Trace) *time.Duration { return &t.Dispatched }
func answeredIn(t *Trace) *time.Duration { return &t.Answered }

// ask notes that a permit is asked for, the first time.
func (t *tracing) ask() {
	if t != nil && t.asked.IsZero() {
		t.asked = time.Now()
	}
}

// void notes that the permit could not be used.
func (t *tracing) void() {
	if t != nil {
		t.Void++
	}
}

// conclude hands the trace over.
func (e *Executor) conclude(t *tracing, a call.Answer) {
	if t != nil {
		t.Outcome, t.Status = a.Outcome, a.Status
		e.Trace(t.Trace)
	}
}
