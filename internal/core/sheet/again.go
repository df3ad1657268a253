package sheet

import (
	"encoding/json"
)

// Again is what a row that had failed begins with when it is run again. What it does not name is forgotten: those calls
// are made anew.
type Again struct {
	Epoch      int64      `json:"e"`           // of the slice that reopens it; a row is reopened once by each
	Receipts   []Receipt  `json:"r,omitempty"` // without a value: the cell of its column
	Cursors    []Cursor   `json:"c,omitempty"`
	Boundaries []Boundary `json:"b,omitempty"`
}

// reopen makes a failed row open again. A row that has been reopened by the same slice has come further since.
func (r *Row) reopen(a *Again) {
	if a == nil || r.Status != RowFailed || r.Again >= a.Epoch {
		return
	}
	receipts := make([]Receipt, len(a.Receipts))
	for i, rec := range a.Receipts {
		if rec.Value == nil && rec.Error == nil && !rec.Rejected && rec.Op == "" {
			if rec.Column < len(r.Cells) {
				rec.Value = r.Cells[rec.Column]
			}
			if rec.Value == nil {
				rec.Value = json.RawMessage("null")
			}
		}
		receipts[i] = rec
	}
	*r = Row{Again: a.Epoch, Receipts: receipts, Cursors: a.Cursors, Boundaries: a.Boundaries}
}

// kept is what a failed row keeps of its calls, so that it can be run again without making those anew that have succeeded:
// all receipts, their values being in the cells; where the retries of the calls stood that have failed; its boundaries.
func (r *Row) kept() (receipts []Receipt, cursors []Cursor) {
	receipts = r.Receipts
	for i := range receipts {
		if receipts[i].Op == "" { // else it is no cell, and nowhere else
			receipts[i].Value = nil
		}
	}
	for _, c := range r.Cursors {
		if rec := r.Receipt(c.Column, c.Step); rec != nil && rec.Error != nil {
			cursors = append(cursors, c)
		}
	}
	return receipts, cursors
}
