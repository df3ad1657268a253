package sheet

import "time"

// An extension that is asked for where others do the work stands in the control item until the record says what has come of
// it. That is one write of the record, so that an extension is never half done, and never done twice.

// Extend asks for rows that a run does not have to be added to it.
type Extend struct {
	Number int       `json:"number"` // counts what was asked for, from 1
	Key    string    `json:"key"`    // by which it is known when it is asked for again
	At     time.Time `json:"at"`
	More
}

// More is where further rows lie, and how they are read.
type More struct {
	Input string `json:"input"` // name of the source
	Source
	Limit int64 `json:"limit,omitempty"`
}

// Extension is what has come of the last extension that was asked for.
type Extension struct {
	Number     int       `json:"number"`
	At         time.Time `json:"at"`
	Rows       int64     `json:"rows"`            // new ones
	Duplicates int64     `json:"duplicates"`      // that the run had already, or that came twice
	Error      string    `json:"error,omitempty"` // why the source was not taken: the run is as it was
	// Execution is that which began with it and left the run as it was; 0: the rows are the run's.
	Execution int `json:"execution,omitempty"`
}

// extensions is how many extensions the record tells of.
func (r *Run) extensions() int {
	if r.Extension == nil {
		return 0
	}
	return r.Extension.Number
}

// Unextended reports whether the run's last execution was for an extension that left it as it was.
func (r *Run) Unextended() bool { return r.Extension != nil && r.Extension.Execution == r.Execution() }

// Extends reports whether an extension is asked for that is not done yet.
func (c *Control) Extends(r *Run) bool { return c.Extend != nil && c.Extend.Number > r.extensions() }

// Execution numbers the execution that is to work on the run: its own, or the next one, which begins with what it is to be
// extended by.
func (c *Control) Execution(r *Run) int {
	if c.Extends(r) {
		return r.Execution() + 1
	}
	return r.Execution()
}

// Ask makes the next of the run's extensions of what is wanted.
func (m More) Ask(r *Run, key string, now time.Time) *Extend {
	return &Extend{Number: r.extensions() + 1, Key: key, At: now.UTC(), More: m}
}
