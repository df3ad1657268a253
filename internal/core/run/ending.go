package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// The steps of `finish` are made by a hidden run of one row: its columns are the steps, its row is the run that has come
// to its end, sealed, so that whoever goes on sees the same. All that holds for the calls of rows holds for them: they
// wait durably (H9), keep their attempts and intents, and are not made again after a crash.

// ending is what makes a job the hidden one.
type ending struct {
	of    string // the run that has come to its end
	steps []mapspec.FinishStep
}

// known is the id under which people know the run that the job works on.
func (j *Job) known() string {
	if j.ending != nil {
		return j.ending.of
	}
	return j.Run.ID
}

// makeSteps works a slice of the hidden run.
func (j *Job) makeSteps(ctx context.Context, p Ports, set Settings) (Result, error) {
	hidden, err := j.hidden(ctx, p.Store)
	if err != nil {
		return Result{}, err
	}
	defer func() { j.since = hidden.since }()
	return hidden.Slice(ctx, p, 0, set)
}

// hidden seals the row, or finds that this was done, and returns the hidden run.
func (j *Job) hidden(ctx context.Context, st *store.Store) (*Job, error) {
	id := j.Run.FinishID()
	sealed, err := intake.Seal(ctx, st, id, &endedRun{run: j.Run}, intake.Position(), intake.SealOptions{})
	if err != nil && !errors.Is(err, intake.ErrSealed) {
		return nil, fmt.Errorf("finish: %w", err)
	}
	rec := &sheet.Run{ID: id, Name: j.Run.Name, Status: sheet.Running, Vars: j.Run.Vars, Sealed: sealed, Shards: 1, Force: j.Run.Force, StartedAt: j.Run.StartedAt}
	hidden := newJob(rec, columnsOf(j.Map.Finish), j.Tools)
	hidden.ending = &ending{of: j.Run.ID, steps: j.Map.Finish}
	hidden.lastCall = len(hidden.Map.Columns) // none: the result of a step is durable before the next one is made
	hidden.since, hidden.budget = j.since, j.budget
	hidden.manifest, err = intake.Manifest(ctx, st, id, sealed)
	return hidden, err
}

// columnsOf is `finish` as a map: a column for each step, and one for what became of them.
func columnsOf(steps []mapspec.FinishStep) *mapspec.Map {
	m := &mapspec.Map{Concurrency: 1, Columns: make([]mapspec.Column, len(steps)+1)}
	for i, s := range steps {
		if s.Call != nil {
			m.Columns[i].Steps = []mapspec.Step{*s.Call}
		}
	}
	return m
}

// madeSteps reads what became of the steps.
func (j *Job) madeSteps(ctx context.Context, st *store.Store) ([]sheet.FinishStep, error) {
	page, err := sheet.LoadPage(ctx, st, j.Run.FinishID(), 0)
	if err != nil {
		return nil, fmt.Errorf("finish: %w", err)
	}
	if len(page.Rows) != 1 || len(page.Rows[0].Cells) != len(j.Map.Finish)+1 {
		return nil, fmt.Errorf("finish: %w: its result page has another form", store.ErrDamaged)
	}
	raw, err := loadCell(ctx, st, j.Run.FinishID(), page.Rows[0].Cells[len(j.Map.Finish)])
	if err != nil {
		return nil, fmt.Errorf("finish: %w", err)
	}
	var steps []sheet.FinishStep
	return steps, json.Unmarshal(raw, &steps)
}

// endedRun is the source of the hidden run's only row: the fields of the object that --json prints.
type endedRun struct {
	run  *sheet.Run
	read bool
}

// Columns implements intake.Source.
func (*endedRun) Columns() []string { return mapspec.RunFields }

// Typed implements intake.Source.
func (*endedRun) Typed() bool { return true }

// Next implements intake.Source.
func (e *endedRun) Next() (intake.Row, error) {
	if e.read {
		return intake.Row{}, io.EOF
	}
	e.read = true
	values := runValues(e.run)
	row := intake.Row{Line: 1, Values: make([]any, len(mapspec.RunFields))}
	for i, name := range mapspec.RunFields {
		row.Values[i] = values[name]
	}
	return row, nil
}

// runValues are what expressions of `finish` see of the run. It has not concluded yet: its end is that of its last row.
func runValues(r *sheet.Run) map[string]any {
	s := r.Stats
	values := map[string]any{
		"id": r.ID, "name": r.Name, "total": r.Sealed.Total, "completed": r.Counts.Completed, "failed": r.Counts.Failed,
		"duplicates": r.Sealed.Duplicates, "slices": s.Slices, "parks": s.Parks, "residentWaitMs": s.ResidentWaitMs, "heldMs": s.HeldMs,
		"calls": map[string]any{"logical": s.Logical, "dispatched": s.Dispatched, "refused429": s.Refused429, "reused": s.Reused, "cached": s.Cached},
		"cost":  float64(s.CostMicros) / 1e6, "startedAt": moment(r.StartedAt), "finishedAt": moment(r.WholeAt), "out": nil,
	}
	if r.Out != "" {
		values["out"] = r.Out
	}
	return values
}

// moment is a time as --json writes it.
func moment(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }
