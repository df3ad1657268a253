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

// Export writes the table. Only a run that Finish has found whole is exported (H8), also while its `finish` is under way,
// or what is finished of a cancelled one: there every row says how it stands.
func (j *Job) Export(ctx context.Context, p Ports, w io.Writer, format string) error {
	cancelled := j.Run.Status == sheet.Cancelled
	if !j.Run.Whole() && !cancelled {
		return fmt.Errorf("run %s is %s: only a completed or cancelled run is exported; `sluice rows %s` shows how far it is", j.Run.ID, j.Run.Status, j.Run.ID)
	}
	columns := j.OutputColumns()
	statuses := j.Run.Statuses || j.Run.Counts.Failed > 0 || cancelled
	if statuses {
		columns = append(columns, statusColumn, errorColumn)
	}
	out, err := export.New(w, format, columns)
	if err != nil {
		return err
	}
	var rows int64
	var counts sheet.Counts
	for v, err := range j.Rows(ctx, p) {
		if err != nil {
			return err
		}
		switch {
		case v.Status == StatusCompleted:
			counts.Completed++
		case v.Status == StatusFailed:
			counts.Failed++
		case !cancelled:
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
	switch {
	case counts != j.Run.Counts:
		return fmt.Errorf("%w: %d completed and %d failed rows were exported, the run has %d and %d",
			ErrIncomplete, counts.Completed, counts.Failed, j.Run.Counts.Completed, j.Run.Counts.Failed)
	case rows != j.Run.Sealed.Rows:
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
