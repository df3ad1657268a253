package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// ErrIncomplete marks a run whose sheet does not hold what it must: it is never exported as complete (H8, X5).
var ErrIncomplete = errors.New("the run's result is not whole")

// Finish ends a run whose shards are done: it checks the sheet against the sealed input and the counts, and makes
// the record say so. Finishing again changes nothing.
func (j *Job) Finish(ctx context.Context, st *store.Store) error {
	return j.FinishWith(ctx, st, func(context.Context) error { return nil })
}

// FinishWith is Finish with something to do, such as writing the export, after the run is found whole and before its
// record says so: nobody sees a completed run without it. It may be done more than once.
func (j *Job) FinishWith(ctx context.Context, st *store.Store, last func(context.Context) error) error {
	if j.Run.Status == sheet.Completed {
		return nil
	}
	began := time.Now()
	if err := j.Run.Refresh(ctx, st); err != nil {
		return err
	}
	if err := j.verify(ctx, st); err != nil {
		return err
	}
	before := *j.Run
	j.Run.Status, j.Run.FinishedAt, j.Run.WakeAt, j.Run.Error = sheet.Completed, time.Now().UTC(), time.Time{}, ""
	if err := last(ctx); err != nil {
		*j.Run = before
		return err
	}
	j.Run.FinishMs, j.Run.Usage = time.Since(began).Milliseconds(), j.Run.Usage.Add(j.used(st))
	return sheet.Save(ctx, st, j.Run)
}

// Fail ends a run that cannot be brought to an end, and says why. What was saved stays.
func (j *Job) Fail(ctx context.Context, st *store.Store, cause error) error {
	if err := j.Run.Refresh(ctx, st); err != nil {
		return errors.Join(cause, err)
	}
	j.Run.Status, j.Run.FinishedAt, j.Run.Error = sheet.Failed, time.Now().UTC(), cause.Error()
	return sheet.Save(ctx, st, j.Run)
}

// Park notes in the record until when the run waits; At work notes that it does not.
func (j *Job) Park(ctx context.Context, st *store.Store, wakeAt time.Time) error {
	j.Run.Status, j.Run.WakeAt = sheet.Parked, wakeAt.UTC()
	return sheet.Save(ctx, st, j.Run)
}

// AtWork notes in the record that the run is at work.
func (j *Job) AtWork(ctx context.Context, st *store.Store) error {
	if j.Run.Status == sheet.Running {
		return nil
	}
	j.Run.Status, j.Run.WakeAt, j.Run.FinishedAt, j.Run.Error, j.Run.Pause = sheet.Running, time.Time{}, time.Time{}, "", nil
	return sheet.Save(ctx, st, j.Run)
}

// verify counts the sheet: every row of every page has ended, and the numbers agree with those of the shards.
func (j *Job) verify(ctx context.Context, st *store.Store) error {
	var sum sheet.Counts
	var rows int64
	for n, ref := range j.manifest {
		page, err := sheet.LoadPage(ctx, st, j.Run.ID, n)
		if errors.Is(err, table.ErrNotFound) {
			return fmt.Errorf("%w: result page %d (rows %d to %d) is missing", ErrIncomplete, n, ref.First+1, ref.First+int64(ref.Rows))
		}
		if err != nil {
			return err
		}
		if len(page.Rows) != ref.Rows || page.Open() > 0 {
			return fmt.Errorf("%w: result page %d has %d rows that have ended, of %d", ErrIncomplete, n, len(page.Rows)-page.Open(), ref.Rows)
		}
		sum = sum.Plus(page.Counts())
		rows += int64(ref.Rows)
	}
	sealed := j.Run.Sealed
	switch {
	case rows != sealed.Rows || rows != sealed.Total-sealed.Duplicates:
		return fmt.Errorf("%w: the sheet holds %d rows, the input has %d and %d duplicates", ErrIncomplete, rows, sealed.Total, sealed.Duplicates)
	case sum != j.Run.Counts:
		return fmt.Errorf("%w: the pages hold %d completed and %d failed rows, the shards counted %d and %d",
			ErrIncomplete, sum.Completed, sum.Failed, j.Run.Counts.Completed, j.Run.Counts.Failed)
	}
	return nil
}

// permanent reports whether trying the slice again cannot help.
func Permanent(err error) bool {
	var page *intake.PageError
	var changed *ChangedError
	var refused *RefusedError
	return errors.As(err, &page) || errors.As(err, &changed) || errors.As(err, &refused) || errors.Is(err, ErrIncomplete) || errors.Is(err, store.ErrDamaged) || isRowError(err)
}
