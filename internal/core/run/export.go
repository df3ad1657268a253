package run

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"sluice/internal/core/export"
	"sluice/internal/core/sheet"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// The columns that say how a row ended.
const (
	statusColumn = "_status"
	errorColumn  = "_error"
)

// Export writes the table. Only a run that Finish has found whole is exported (H8), also while its `finish` is under way.
func (j *Job) Export(ctx context.Context, p Ports, w io.Writer, format string) error {
	if !j.Run.Whole() {
		return fmt.Errorf("run %s is %s: only a completed run is exported; `sluice rows %s` shows how far it is", j.Run.ID, j.Run.Status, j.Run.ID)
	}
	columns := j.OutputColumns()
	statuses := j.Run.Statuses || j.Run.Counts.Failed > 0
	if statuses {
		columns = append(columns, statusColumn, errorColumn)
	}
	out, err := export.New(w, format, columns)
	if err != nil {
		return err
	}
	var rows int64
	for v, err := range j.Rows(ctx, p) {
		if err != nil {
			return err
		}
		if v.Status != StatusCompleted && v.Status != StatusFailed {
			return fmt.Errorf("%w: row %d has not ended", ErrIncomplete, v.Row)
		}
		rec, err := j.Output(v)
		if err != nil {
			return err
		}
		if statuses {
			rec = append(rec, v.Status, faultText(v.Error))
		}
		if err := out.Write(rec); err != nil {
			return err
		}
		rows++
	}
	if rows != j.Run.Sealed.Rows {
		return fmt.Errorf("%w: %d rows were exported, the input has %d", ErrIncomplete, rows, j.Run.Sealed.Rows)
	}
	return out.Flush()
}

func faultText(f *sheet.Fault) any {
	if f == nil {
		return nil
	}
	return f.Error()
}
