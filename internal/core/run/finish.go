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

// Finish brings a run whose shards are done to its end, in this order: the sheet is checked against the sealed input and
// the counts; table, if there is one, writes the export; the steps of the map's `finish` are made; the record says
// completed. It returns Done when it does. With any other outcome it is to be called again: a step has to wait (Parked),
// the deadline is near (More), or somebody else is at it (Busy). Finishing again changes nothing; table may be called
// more than once.
func (j *Job) Finish(ctx context.Context, p Ports, set Settings, table func(context.Context) error) (Result, error) {
	done := Result{Outcome: Done}
	if j.Run.Status == sheet.Completed {
		return done, nil
	}
	if len(j.Map.Finish) == 0 {
		return done, j.whole(ctx, p.Store, table, func() { j.completed(time.Now()) })
	}
	if j.Run.WholeAt.IsZero() {
		err := j.whole(ctx, p.Store, table, func() { j.Run.WholeAt = time.Now().UTC() })
		if err != nil {
			return Result{}, err
		}
	}
	res, err := j.makeSteps(ctx, p, set)
	if err != nil || res.Outcome != Done {
		return res, err
	}
	return done, j.concluded(ctx, p.Store)
}

// whole verifies the sheet and writes the table, and then saves the record with what mark says: nobody sees a whole run
// without its table.
func (j *Job) whole(ctx context.Context, st *store.Store, table func(context.Context) error, mark func()) error {
	began, before := time.Now(), *j.Run
	err := j.Run.Refresh(ctx, st)
	if err == nil {
		err = j.verify(ctx, st)
	}
	if err == nil {
		mark()
		if table != nil {
			err = table(ctx)
		}
	}
	used := j.used(st)
	if err == nil {
		j.Run.FinishMs, j.Run.Usage = time.Since(began).Milliseconds(), j.Run.Usage.Add(used)
		err = sheet.Save(ctx, st, j.Run)
	}
	if err != nil {
		*j.Run = before
		return err
	}
	j.since = j.since.Add(used)
	return nil
}

// completed makes the record say so.
func (j *Job) completed(at time.Time) {
	j.Run.Status, j.Run.FinishedAt, j.Run.WakeAt, j.Run.WholeAt, j.Run.Error = sheet.Completed, at.UTC(), time.Time{}, time.Time{}, ""
	j.Run.Endings++
}

// concluded makes the record of a run say what became of its `finish`, and that it has completed.
func (j *Job) concluded(ctx context.Context, st *store.Store) error {
	before := *j.Run
	steps, err := j.madeSteps(ctx, st)
	if err == nil {
		err = j.Run.Refresh(ctx, st)
	}
	if err == nil {
		j.completed(time.Now())
		j.Run.Finish, j.Run.Usage = steps, j.Run.Usage.Add(j.used(st))
		err = sheet.Save(ctx, st, j.Run)
	}
	if err != nil {
		*j.Run = before
	}
	return err
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
	var missing *NoResolverError
	return errors.As(err, &page) || errors.As(err, &changed) || errors.As(err, &refused) || errors.As(err, &missing) || errors.As(err, &missing) || errors.Is(err, ErrIncomplete) || errors.Is(err, store.ErrDamaged) || isRowError(err)
}
