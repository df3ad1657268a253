package run

import (
	"context"
	"encoding/json"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
)

var noResidency hold.Residency

// result is what became of a cell in this pass: a value, a failure, a hold, or an error that ends the slice.
type result struct {
	value any
	fail  *call.Error
	hold  *held
	tried *sheet.Entry    // with hold: the call's cursor, if it moved
	away  *sheet.Boundary // the row waits there, at work nowhere
	err   error
}

// cell computes one cell. A failure is replaced by the column's onError value; a hold never is (H1, R3).
func (r *row) cell(ctx context.Context, c int, column *mapspec.Column) result {
	if r.s.job.ending != nil {
		return r.finishStep(ctx, c, column)
	}
	res := r.attempted(ctx, c, column)
	if res.fail == nil || column.OnError == nil {
		return res
	}
	v, err := column.OnError.Eval(&r.env)
	if err != nil {
		return result{fail: exprError(err)}
	}
	return r.keep(c, v)
}

func (r *row) attempted(ctx context.Context, c int, column *mapspec.Column) result {
	if column.When != nil {
		yes, err := column.When.EvalBool(&r.env)
		if err != nil {
			return result{fail: exprError(err)}
		}
		if !yes {
			return r.keep(c, nil)
		}
	}
	switch {
	case column.Value != nil:
		v, err := column.Value.Eval(&r.env)
		if err != nil {
			return result{fail: exprError(err)}
		}
		return r.keep(c, v)
	case column.Waterfall:
		return r.waterfall(ctx, c, column)
	case column.Sleep != nil:
		return r.sleep(ctx, c, column)
	case column.Event != nil:
		return r.event(ctx, c, column)
	case column.Resolve != nil:
		return r.resolve(ctx, c, column)
	}
	rec, res := r.step(ctx, c, 0, column, true)
	if rec == nil {
		return res
	}
	return r.received(c, rec)
}

// keep stores a computed value as the cell.
func (r *row) keep(c int, v any) result {
	raw, err := value.Encode(v)
	if err != nil {
		return result{fail: exprError(err)}
	}
	r.cells[c] = raw
	return result{value: v}
}

// received turns the receipt of a call into the cell.
func (r *row) received(c int, rec *sheet.Receipt) result {
	if rec.Error != nil {
		return result{fail: rec.Error}
	}
	if rec == r.tail {
		r.cells[c] = rec.Value // not in the journal yet: it travels with the row's end
	}
	if r.s.job.unread[c] {
		return result{}
	}
	v, err := value.Decode(rec.Value)
	if err != nil {
		return result{fail: exprError(err)}
	}
	return result{value: v}
}

// recall returns a receipt that is on record, with its value if a later column reads it.
func (r *row) recall(ctx context.Context, rec *sheet.Receipt) (*sheet.Receipt, result) {
	if rec.Value == nil || r.s.job.unread[rec.Column] {
		return rec, result{}
	}
	known := *rec
	var err error
	if known.Value, err = r.s.job.cell(ctx, r.s.ports.Store, rec.Value); err != nil {
		return nil, result{err: err}
	}
	return &known, result{}
}

// waterfall takes the first accepted result. Misses and failures fall through, holds do not. If no step was
// accepted, `otherwise` is the value; without it, a failure of the last step that failed is the cell's failure.
func (r *row) waterfall(ctx context.Context, c int, column *mapspec.Column) result {
	var failure *call.Error
	for p := range column.Steps {
		rec, res := r.step(ctx, c, p, column, p == len(column.Steps)-1)
		switch {
		case rec == nil:
			return res
		case rec.Error != nil:
			failure = rec.Error
		case !rec.Rejected:
			return r.received(c, rec)
		}
	}
	switch {
	case column.Otherwise != nil:
		v, err := column.Otherwise.Eval(&r.env)
		if err != nil {
			return result{fail: exprError(err)}
		}
		return r.keep(c, v)
	case failure != nil:
		return result{fail: failure}
	}
	return r.keep(c, nil)
}

// step makes the call of one step unless it is on record. It returns the receipt, or a hold or error.
func (r *row) step(ctx context.Context, c, p int, column *mapspec.Column, lastStep bool) (*sheet.Receipt, result) {
	if rec := r.receipt(c, p); rec != nil {
		return r.recall(ctx, rec)
	}
	step := &column.Steps[p]
	rec := sheet.Receipt{Column: c, Step: p}
	q, with, fail := r.query(c, p, step)
	if fail == nil {
		var hold result
		if rec, hold = r.call(ctx, q, with, rec, step, column.Waterfall); hold.hold != nil || hold.err != nil {
			return nil, hold
		}
	} else {
		rec.Error = fail
	}
	settled := rec.Error == nil && !rec.Rejected || lastStep
	last := settled && c >= r.s.job.lastCall
	if err := r.receive(ctx, rec, last); err != nil {
		return nil, result{err: err}
	}
	if last {
		return r.tail, result{}
	}
	return &rec, result{}
}

// call makes a call that is prepared, together with those that it is bound to.
func (r *row) call(ctx context.Context, q query, with map[string]any, rec sheet.Receipt, step *mapspec.Step, waterfall bool) (sheet.Receipt, result) {
	if q.at.Batch != nil {
		fail, err := r.rejoin(ctx, &q)
		if fail != nil || err != nil {
			rec.Error = fail
			return rec, result{err: err}
		}
	}
	return r.ask(ctx, q, with, rec, step, waterfall)
}

// query prepares the call: its input, checked, and its identity.
func (r *row) query(c, p int, step *mapspec.Step) (query, map[string]any, *call.Error) {
	with := map[string]any{}
	if step.With != nil {
		v, err := step.With.Eval(&r.env)
		if err != nil {
			return query{}, nil, exprError(err)
		}
		with, _ = v.(map[string]any)
	}
	return r.prepare(c, p, step.Tool, with)
}

// prepare is query for an input that is computed.
func (r *row) prepare(c, p int, tool *mapspec.Tool, with map[string]any) (query, map[string]any, *call.Error) {
	with, err := tool.CheckInput(with)
	if err != nil {
		return query{}, nil, &call.Error{Code: "BAD_INPUT", Message: err.Error()}
	}
	input, err := value.Encode(with)
	if err != nil {
		return query{}, nil, &call.Error{Code: "BAD_INPUT", Message: err.Error()}
	}
	q := query{
		id: call.NewID(r.s.job.Run.ID, r.task.Row, c, p), place: call.Place{Row: r.task.Row, Column: c, Step: p},
		tool: tool, input: input, task: r.task,
	}
	if tool.Idempotent {
		q.digest = call.DigestOf(tool, input)
	}
	if cursor := r.cursor(c, p); cursor != nil {
		q.at = call.Cursor{Next: cursor.Next, Refused: cursor.Refused, Batch: cursor.Batch}
		if cursor.Intended {
			return query{}, nil, diedWith(q, cursor)
		}
	}
	if !tool.Repeatable() || binds(tool) {
		q.intent = &intent{pages: r.s.pages, page: r.page, entry: sheet.Entry{
			Row: r.task.Row, Receipt: sheet.Receipt{Column: c, Step: p}, Next: q.at.Next, Refused: q.at.Refused}}
	}
	return q, with, nil
}

// ask makes the call and turns its answer into the receipt of what the column keeps.
func (r *row) ask(ctx context.Context, q query, with map[string]any, rec sheet.Receipt, step *mapspec.Step, waterfall bool) (sheet.Receipt, result) {
	var kept string
	if !q.digest.IsZero() && !r.s.job.personal[rec.Column] {
		kept = q.digest.Kept(rec.Column, rec.Step)
		if v, ok := r.s.caller.memo.Get(kept); ok {
			var err error
			r.s.tally.reused.Add(1)
			if rec.Shared = kept; string(v) == rejected {
				rec.Rejected = true
				return rec, result{}
			}
			rec.Value, err = r.s.job.cell(ctx, r.s.ports.Store, v)
			return rec, result{err: err}
		}
	}
	f, err := r.s.caller.make(ctx, q)
	switch {
	case err != nil:
		return rec, result{err: err}
	case f.hold != nil:
		return rec, result{hold: f.hold, tried: cursorEntry(r.task.Row, rec, q, f.at)}
	case f.fail != nil:
		rec.Error = f.fail
	case f.miss:
		rec.Value, rec.Rejected = json.RawMessage("null"), waterfall
	default:
		r.accept(&rec, f.value, with, step)
	}
	if rec.Error == nil {
		rec.Shared = kept
	}
	return rec, result{}
}

// cursorEntry records the next attempt of a call that goes on, if it is another than before, and takes an intent back.
func cursorEntry(row int64, rec sheet.Receipt, q query, at call.Cursor) *sheet.Entry {
	if at == q.at && q.intent == nil {
		return nil
	}
	return &sheet.Entry{Kind: sheet.Tried, Row: row, Receipt: sheet.Receipt{Column: rec.Column, Step: rec.Step}, Next: at.Next, Refused: at.Refused, Batch: at.Batch}
}

// accept applies the step's own expressions to a result.
func (r *row) accept(rec *sheet.Receipt, raw json.RawMessage, with map[string]any, step *mapspec.Step) {
	rec.Value = raw
	if step.Accept == nil && step.Result == nil {
		return
	}
	v, err := value.Decode(raw)
	if err == nil {
		env := r.env
		env.Result, env.Input = v, with
		err = r.judge(rec, v, &env, step)
	}
	if err != nil {
		rec.Value, rec.Error = nil, exprError(err)
	}
}

func (r *row) judge(rec *sheet.Receipt, v any, env *mapspec.Env, step *mapspec.Step) error {
	if step.Accept != nil {
		yes, err := step.Accept.EvalBool(env)
		if err != nil {
			return err
		}
		if !yes {
			rec.Value, rec.Rejected = nil, true
			return nil
		}
	}
	if step.Result == nil {
		return nil
	}
	kept, err := step.Result.Eval(env)
	if err != nil {
		return err
	}
	rec.Value, err = value.Encode(kept)
	return err
}
