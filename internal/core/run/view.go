package run

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
)

// RowView is a row as a person looks at it.
type RowView struct {
	Row    int64          `json:"row"` // 1-based, in the source
	Status string         `json:"status"`
	Input  map[string]any `json:"input"`
	Cells  map[string]any `json:"cells,omitempty"`
	Error  *sheet.Fault   `json:"error,omitempty"`
	Held   *sheet.Pending `json:"held,omitempty"`
	Place  int64          `json:"-"` // in the sheet, from 0
	Waits  *WaitView      `json:"waits,omitempty"`
	values []any          // input, aligned with the sealed columns
	state  *sheet.Row
}

// WaitView says what a row waits for.
type WaitView struct {
	Column string    `json:"column"`
	Key    string    `json:"key,omitempty"`  // of the event; empty: the row sleeps
	Until  time.Time `json:"until"`          // the end of the sleep, or until when an answer is in time
	Open   bool      `json:"open,omitempty"` // an answer is taken after that, too
}

// The statuses of a row.
const (
	StatusCompleted   = "completed"
	StatusFailed      = "failed"
	StatusHeld        = "held"
	StatusWaiting     = "waiting"     // for an answer, or asleep
	StatusWorking     = "working"     // a slice has taken it: it is computed, called for, or waits for its turn
	StatusInterrupted = "interrupted" // a slice had taken it which has ended; the next one goes on with it
	StatusPending     = "pending"     // not begun, or begun since the last checkpoint
	StatusCancelled   = "cancelled"   // of a cancelled run: it had not ended, and will not by itself
)

// RowStatuses are all of them.
func RowStatuses() []string {
	return []string{StatusCompleted, StatusFailed, StatusHeld, StatusWaiting, StatusWorking, StatusInterrupted, StatusPending, StatusCancelled}
}

// Rows yields the rows in input order, as far as they have come: from the pages, and for a run that is at work from
// the journal. It only reads, so that it can look at a run that another process is working on.
func (j *Job) Rows(ctx context.Context, p Ports) iter.Seq2[*RowView, error] {
	return func(yield func(*RowView, error) bool) {
		reader := j.Reader(p)
		for place := int64(0); place < j.Run.Sealed.Rows; {
			rows, next, err := reader.Page(ctx, RowQuery{From: place})
			for _, v := range rows {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			place = next
		}
	}
}

func (j *Job) view(ctx context.Context, p Ports, input *intake.Page, state *sheet.Page, i int, live *liveShard) (*RowView, error) {
	row := &state.Rows[i]
	v := &RowView{
		Place: state.First + int64(i), Row: input.Index[i] + 1, Input: input.Row(i, j.Run.Sealed.Columns), Error: row.Fault, values: input.Values[i], state: row,
	}
	v.Status, v.Held = j.standing(state, i, live)
	if v.Status == StatusWaiting {
		v.Waits = j.waitView(row.Waits(time.Now()))
	}
	v.Cells = map[string]any{}
	for c, raw := range j.cellsOf(row) {
		if raw == nil {
			continue
		}
		raw, err := j.cell(ctx, p.Store, raw)
		if err != nil {
			return nil, err
		}
		if v.Cells[j.Map.Columns[c].Name], err = value.Decode(raw); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// standing is where a row stands, and what holds it.
func (j *Job) standing(state *sheet.Page, i int, live *liveShard) (string, *sheet.Pending) {
	switch state.Rows[i].Status {
	case sheet.RowCompleted:
		return StatusCompleted, nil
	case sheet.RowFailed:
		return StatusFailed, nil
	}
	if j.Run.Status == sheet.Cancelled {
		return StatusCancelled, nil
	}
	h := live.held[state.First+int64(i)]
	switch {
	case h != nil && !h.Until.IsZero():
		return StatusHeld, h
	case h != nil && live.owned:
		return StatusWorking, nil
	case h != nil:
		return StatusInterrupted, nil
	case state.Rows[i].Waits(time.Now()) != nil:
		return StatusWaiting, nil
	}
	return StatusPending, nil
}

func (j *Job) waitView(b *sheet.Boundary) *WaitView {
	if b == nil || b.Column >= len(j.Map.Columns) {
		return nil // it has just ended
	}
	return &WaitView{Column: j.Map.Columns[b.Column].Name, Key: b.Key, Until: b.Until, Open: b.Open}
}

// cellsOf are the cells known so far: those of the row's end, or of the receipts of a row that is open.
func (j *Job) cellsOf(row *sheet.Row) []json.RawMessage {
	if row.Status != sheet.RowOpen {
		return row.Cells
	}
	cells := make([]json.RawMessage, len(j.Map.Columns))
	for _, rec := range row.Receipts {
		if rec.Error == nil && !rec.Rejected && rec.Op == "" && rec.Column < len(cells) {
			cells[rec.Column] = rec.Value
		}
	}
	return cells
}

// OutputColumns are the columns of the export, without the status columns.
func (j *Job) OutputColumns() []string {
	var names []string
	if j.Map.Output != nil {
		for _, o := range j.Map.Output {
			names = append(names, o.Name)
		}
		return names
	}
	names = append(names, j.Run.Sealed.Columns...)
	for _, c := range j.Map.Columns {
		names = append(names, c.Name)
	}
	return names
}

// Output is the row's record in the export. A failed row keeps its input columns; its cells are null, so that half a
// row never looks like a result.
func (j *Job) Output(v *RowView) ([]any, error) {
	failed := v.Status != StatusCompleted
	if j.Map.Output == nil {
		return j.plainOutput(v, failed), nil
	}
	env := mapspec.Env{Row: v.Input, Cells: v.Cells, Vars: j.Run.Vars, Index: v.Row - 1}
	rec := make([]any, len(j.Map.Output))
	for i, o := range j.Map.Output {
		if names, all := o.Value.Cells(); failed && (all || len(names) > 0) {
			continue
		}
		cell, err := o.Value.Eval(&env)
		if err != nil {
			return nil, &OutputError{Row: v.Row, Column: o.Name, Err: err}
		}
		rec[i] = cell
	}
	return rec, nil
}

func (j *Job) plainOutput(v *RowView, failed bool) []any {
	inputs := len(j.Run.Sealed.Columns)
	rec := make([]any, inputs+len(j.Map.Columns))
	copy(rec, v.values)
	if failed {
		return rec
	}
	for c := range j.Map.Columns {
		rec[inputs+c] = v.Cells[j.Map.Columns[c].Name]
	}
	return rec
}

// OutputError is a failure of an `output` expression.
type OutputError struct {
	Row    int64 // 1-based
	Column string
	Err    error
}

func (e *OutputError) Error() string {
	return "output column " + e.Column + ", row " + itoa(e.Row) + ": " + e.Err.Error()
}

// Unwrap returns the expression's error.
func (e *OutputError) Unwrap() error { return e.Err }
