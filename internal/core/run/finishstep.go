package run

import (
	"context"
	"encoding/json"
	"strings"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
)

// finishStep makes one step. Its failure is noted, and ends nothing: the rows are all there, and the other steps are made
// all the same. In the last column stands what became of them.
func (r *row) finishStep(ctx context.Context, c int, column *mapspec.Column) result {
	steps := r.s.job.ending.steps
	if c == len(steps) {
		raw, err := json.Marshal(r.made)
		if err != nil {
			return result{err: err}
		}
		r.cells[c] = raw
		return result{}
	}
	var made sheet.FinishStep
	var res result
	if steps[c].Publish != nil {
		made, res = r.publish(ctx, steps[c].Publish)
	} else {
		made, res = r.finishCall(ctx, c, column, steps[c].OnError)
	}
	if res.err != nil || res.hold != nil {
		return res
	}
	r.made = append(r.made, made)
	r.cells[c] = json.RawMessage("null")
	return result{}
}

func (r *row) finishCall(ctx context.Context, c int, column *mapspec.Column, onError *mapspec.Template) (sheet.FinishStep, result) {
	made := sheet.FinishStep{Call: column.Steps[0].Tool.Name}
	rec, res := r.step(ctx, c, 0, column, true)
	switch {
	case rec == nil:
		return made, res
	case rec.Error == nil:
		made.Result = shown(rec.Value)
		return made, result{}
	case onError == nil:
		made.Error = faultOf(rec.Error)
		return made, result{}
	}
	v, err := onError.Eval(&r.env)
	if err == nil {
		var raw json.RawMessage
		raw, err = value.Encode(v)
		made.Result = shown(raw)
	}
	if err != nil {
		made.Error = faultOf(exprError(err))
	}
	return made, result{}
}

// What the record shows of a step is bounded, in bytes, because it is one item: of a result, and of an error.
const (
	maxShown   = 4 << 10
	maxMessage = 2 << 10
)

func shown(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxShown || isReference(raw) || string(raw) == "null" {
		return nil
	}
	return raw
}

func faultOf(e *call.Error) *sheet.Fault {
	f := sheet.FaultOf("", e)
	if len(f.Message) > maxMessage {
		f.Message = strings.ToValidUTF8(f.Message[:maxMessage], "") + "..."
	}
	return f
}
