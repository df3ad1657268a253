package run

import (
	"slices"

	"sluice/internal/core/call"
	"sluice/internal/core/resolver"
	"sluice/internal/core/sheet"
)

// again is what a failed row begins with; nil if it stays as it is. Of the column that has failed, the failures are
// forgotten; whatever came before stays as it was.
func (x *reopener) again(row *sheet.Row) *sheet.Again {
	a, failed := &sheet.Again{}, x.columnOf(row.Fault)
	unknown := row.Fault.Code == call.OutcomeUnknown
	named := false // a receipt says which call it is whose outcome is unknown
	for _, rec := range row.Receipts {
		switch {
		case rec.Column == failed && (x.asksAgain(row, &rec) || rec.Step == resultStep):
		case rec.Column != failed || rec.Error == nil:
			a.Receipts = append(a.Receipts, rec)
		case rec.Error.Code != call.OutcomeUnknown:
			a.Cursors = append(a.Cursors, x.cursor(row, &rec)...)
		default:
			named = true
			if kept, fine := x.unknown(rec); fine {
				a.Receipts = append(a.Receipts, kept...)
			} else if !unknown { // another step has failed since: this one stays as it is
				a.Receipts = append(a.Receipts, rec)
			} else {
				return nil
			}
		}
	}
	if unknown && !named { // of an older page
		kept, fine := x.unknown(sheet.Receipt{Column: failed, Step: x.lastStep(failed)})
		if !fine || failed < 0 {
			return nil
		}
		a.Receipts = append(a.Receipts, kept...)
	}
	a.Receipts = append(a.Receipts, x.older(row, failed)...)
	a.Boundaries = slices.DeleteFunc(slices.Clone(row.Boundaries), func(b sheet.Boundary) bool { return b.Column == failed && b.Event() })
	return a
}

// asksAgain reports whether the receipt is the notification of an event that was not answered: it is asked again, with a
// time of its own, and somebody is told again.
func (x *reopener) asksAgain(row *sheet.Row, rec *sheet.Receipt) bool {
	column := &x.job.Map.Columns[rec.Column]
	answer := answerStep
	switch {
	case column.Event != nil && rec.Step == notifyStep:
	case column.Resolve != nil && rec.Step >= 0:
		answer = resolver.Next(rec.Step)
		if b := row.Boundary(rec.Column, answer); b == nil || opOf(b) != rec.Op {
			return false
		}
	default:
		return false
	}
	got := row.Receipt(rec.Column, answer)
	return got == nil || got.Error != nil
}

// unknown is what remains of a call with an unknown outcome; false: the row stays as it is.
func (x *reopener) unknown(rec sheet.Receipt) ([]sheet.Receipt, bool) {
	switch x.how.Unknown {
	case RepeatUnknown:
		return nil, true
	case AcceptUnknown:
		return []sheet.Receipt{{Column: rec.Column, Step: rec.Step, Op: rec.Op, Value: x.how.Value}}, true
	}
	return nil, false
}

// cursor lets a call that is made anew go on with the identity that it had: all attempts are before it again, but a
// provider that may have executed the last request must know it again (R8).
func (x *reopener) cursor(row *sheet.Row, rec *sheet.Receipt) []sheet.Cursor {
	c := row.Cursor(rec.Column, rec.Step)
	if c == nil || c.Refused == 0 && c.Batch == nil {
		return nil
	}
	fresh := sheet.Cursor{Column: c.Column, Step: c.Step, Refused: c.Refused}
	if ambiguous(rec.Error) {
		fresh.Batch = c.Batch
	}
	return []sheet.Cursor{fresh}
}

// ambiguous reports whether the call may have been executed although it failed.
func ambiguous(e *call.Error) bool {
	const serverError = 500
	return e.Dispatched && (e.Status == 0 || e.Status == 408 || e.Status >= serverError)
}

// columnOf is the number of the column that has failed; -1 if there is none of that name.
func (x *reopener) columnOf(f *sheet.Fault) int {
	for c := range x.job.Map.Columns {
		if x.job.Map.Columns[c].Name == f.Column {
			return c
		}
	}
	return -1
}

func (x *reopener) lastStep(column int) int {
	if column < 0 {
		return 0
	}
	return max(len(x.job.Map.Columns[column].Steps)-1, 0)
}

// older makes receipts of cells that an older page keeps without: of columns before the one that has failed.
func (x *reopener) older(row *sheet.Row, failed int) []sheet.Receipt {
	var list []sheet.Receipt
	for c := range max(min(failed, len(row.Cells)), 0) {
		known := slices.ContainsFunc(row.Receipts, func(rec sheet.Receipt) bool { return rec.Column == c })
		if column := &x.job.Map.Columns[c]; !known && len(column.Steps) > 0 && column.Event == nil {
			list = append(list, sheet.Receipt{Column: c}) // its value is the cell
		}
	}
	return list
}
