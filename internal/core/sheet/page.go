package sheet

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/store"
)

// RowStatus is where a row stands.
type RowStatus uint8

// The statuses of a row.
const (
	RowOpen RowStatus = iota // not admitted, at work, or held
	RowCompleted
	RowFailed
)

// Row is a row's durable state: its cells, and while it is open the receipts and retry cursors of its calls.
type Row struct {
	Status     RowStatus
	Cells      []json.RawMessage // of a row that has ended, one per column of the map
	Fault      *Fault
	Receipts   []Receipt  // while open; afterwards without their values, of a completed row only those that others may share
	Cursors    []Cursor   // while open; of a failed row those of failed calls
	Boundaries []Boundary // while open, and of a failed row
	Again      int64      // epoch of the slice that has last reopened it; 0: none has
}

// Cursor is where the retries of an open call stand.
type Cursor struct {
	Column   int         `json:"c"`
	Step     int         `json:"p,omitempty"`
	Next     int         `json:"n"`
	Refused  int         `json:"u,omitempty"`
	At       int64       `json:"t,omitempty"`
	Batch    *call.Batch `json:"b,omitempty"`
	Op       string      `json:"y,omitempty"` // as in Receipt
	Until    time.Time   `json:"h,omitzero"`  // as in Entry
	Scope    string      `json:"s,omitempty"`
	Why      call.Why    `json:"q,omitzero"`
	Intended bool        `json:"i,omitempty"` // dispatched, perhaps; must not be dispatched again
}

// Receipt finds the receipt of a call.
func (r *Row) Receipt(column, step int) *Receipt {
	for i := range r.Receipts {
		if r.Receipts[i].Column == column && r.Receipts[i].Step == step {
			return &r.Receipts[i]
		}
	}
	return nil
}

// Cursor finds the retry cursor of a call; nil if it has none.
func (r *Row) Cursor(column, step int) *Cursor {
	for i := range r.Cursors {
		if r.Cursors[i].Column == column && r.Cursors[i].Step == step {
			return &r.Cursors[i]
		}
	}
	return nil
}

// apply brings the row to what the entry says. Applying an entry twice changes nothing.
func (r *Row) apply(e *Entry, columns int) error {
	if e.Kind == Reopened {
		r.reopen(e.Again)
	}
	if r.Status != RowOpen {
		return nil
	}
	switch e.Kind {
	case Received:
		if e.Error == nil { // of a call that has failed it says which request was the last
			r.dropCursor(e.Column, e.Step)
		}
		if r.Receipt(e.Column, e.Step) == nil {
			r.Receipts = append(r.Receipts, e.Receipt)
		}
	case Tried, Intended:
		r.dropCursor(e.Column, e.Step)
		r.Cursors = append(r.Cursors, Cursor{Column: e.Column, Step: e.Step, Next: e.Next, Refused: e.Refused, At: e.At, Batch: e.Batch, Op: e.Op, Until: e.Until, Scope: e.Scope, Why: e.Why, Intended: e.Kind == Intended})
	case Bounded:
		if e.Bound != nil && r.Boundary(e.Bound.Column, e.Bound.Step) == nil {
			r.Boundaries = append(r.Boundaries, *e.Bound)
		}
	case RowEnded:
		return r.end(e, columns)
	}
	return nil
}

func (r *Row) dropCursor(column, step int) {
	for i := range r.Cursors {
		if r.Cursors[i].Column == column && r.Cursors[i].Step == step {
			r.Cursors = append(r.Cursors[:i], r.Cursors[i+1:]...)
			return
		}
	}
}

// end gathers the row's cells from its receipts and from the entry.
func (r *Row) end(e *Entry, columns int) error {
	r.Cells = make([]json.RawMessage, columns)
	var shared []Receipt
	for _, receipt := range r.Receipts {
		if receipt.Column >= columns {
			return fmt.Errorf("row %d: a receipt of column %d, the map has %d", e.Row, receipt.Column, columns)
		}
		if receipt.Error == nil && !receipt.Rejected && receipt.Op == "" {
			r.Cells[receipt.Column] = receipt.Value
		}
		if receipt.Shared != "" {
			receipt.Value = nil
			shared = append(shared, receipt)
		}
	}
	for column, cell := range e.Cells {
		switch {
		case cell == nil:
		case column >= columns:
			return fmt.Errorf("row %d: a cell of column %d, the map has %d", e.Row, column, columns)
		default:
			r.Cells[column] = cell
		}
	}
	if e.Fault == nil && slices.ContainsFunc(r.Cells, func(cell json.RawMessage) bool { return cell == nil }) {
		return fmt.Errorf("%w: row %d ends, and a cell of it is nowhere", store.ErrDamaged, e.Row)
	}
	if e.Shared != "" {
		shared = append(shared, Receipt{Column: e.Column, Step: e.Step, Rejected: e.Rejected, Shared: e.Shared})
	}
	r.Fault = e.Fault
	if e.Fault != nil {
		r.Status = RowFailed
		r.Receipts, r.Cursors = r.kept()
		return nil
	}
	r.Status, r.Receipts, r.Cursors, r.Boundaries = RowCompleted, shared, nil, nil
	return nil
}

// Page is the state of a page of rows: what becomes its result page.
type Page struct {
	Number int
	First  int64 // ordinal of the first row
	Rows   []Row
}

// NewPage is a page on which nothing has happened yet.
func NewPage(number int, first int64, rows int) *Page {
	return &Page{Number: number, First: first, Rows: make([]Row, rows)}
}

// Row returns the state of the row with this ordinal, nil if it is of another page.
func (p *Page) Row(ordinal int64) *Row {
	if ordinal < p.First || ordinal >= p.First+int64(len(p.Rows)) {
		return nil
	}
	return &p.Rows[ordinal-p.First]
}

// Apply brings the page to what the entry says; columns is the number of columns of the map.
func (p *Page) Apply(e *Entry, columns int) error {
	row := p.Row(e.Row)
	if row == nil {
		return fmt.Errorf("page %d: an entry of row %d, which it does not hold", p.Number, e.Row)
	}
	return row.apply(e, columns)
}

// Open counts the rows that have not ended.
func (p *Page) Open() int {
	n := 0
	for i := range p.Rows {
		if p.Rows[i].Status == RowOpen {
			n++
		}
	}
	return n
}

// Counts counts the rows that have ended.
func (p *Page) Counts() Counts {
	var c Counts
	for i := range p.Rows {
		switch p.Rows[i].Status {
		case RowCompleted:
			c.Completed++
		case RowFailed:
			c.Failed++
		}
	}
	return c
}
