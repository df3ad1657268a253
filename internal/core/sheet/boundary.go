package sheet

import "time"

// Boundary is a durable wait inside a row. It is fixed when it is created: whatever is replayed later finds it, and
// neither begins the wait anew nor tells anybody again (E1).
type Boundary struct {
	Column int       `json:"c"`
	Step   int       `json:"p,omitempty"`
	Until  time.Time `json:"u"`           // the end of a sleep, or when an answer comes too late; whole milliseconds
	Key    string    `json:"y,omitempty"` // under which an event is answered; empty: a sleep
	Open   bool      `json:"o,omitempty"` // an event that goes on waiting after Until (E4)
}

// Event reports whether the boundary waits for an answer.
func (b *Boundary) Event() bool { return b.Key != "" }

// Wakes is when the row goes on without an answer; zero: never.
func (b *Boundary) Wakes() time.Time {
	if b.Open {
		return time.Time{}
	}
	return b.Until
}

// Boundary finds a row's boundary; nil if it has none there.
func (r *Row) Boundary(column, step int) *Boundary {
	for i := range r.Boundaries {
		if r.Boundaries[i].Column == column && r.Boundaries[i].Step == step {
			return &r.Boundaries[i]
		}
	}
	return nil
}

// Waits is the boundary at which an open row waits at the given time; nil if it does not.
func (r *Row) Waits(now time.Time) *Boundary {
	for i := range r.Boundaries {
		b := &r.Boundaries[i]
		if r.Receipt(b.Column, b.Step) == nil && (b.Event() || b.Until.After(now)) {
			return b
		}
	}
	return nil
}

// Rests reports whether every open row of the page has come to a boundary: nothing is at work on the page, as far as it
// can tell, and it need not be kept in memory.
func (p *Page) Rests() bool {
	for i := range p.Rows {
		if row := &p.Rows[i]; row.Status == RowOpen && len(row.Boundaries) == 0 {
			return false
		}
	}
	return true
}
