package mapspec

import "fmt"

// Interpret says what an answer means: missing ("there is no such thing"), then failed (an answer that is a failure
// whatever its status says), and otherwise the tool's result, by default the whole body. An error means that the
// answer is not of the shape that the tool's expressions expect.
func (t *Tool) Interpret(status int, header map[string]any, body any, input map[string]any) (result any, missing, failed bool, err error) {
	env := &Env{Status: int64(status), Headers: header, Body: body, Input: t.complete(input)}
	if t.Missing != nil {
		if missing, err = t.Missing.EvalBool(env); err != nil {
			return nil, false, false, fmt.Errorf("tool %s: missing: %w", t.Name, err)
		}
		if missing {
			return nil, true, false, nil
		}
	}
	if t.Fail != nil {
		if failed, err = t.Fail.EvalBool(env); err != nil {
			return nil, false, false, fmt.Errorf("tool %s: fail: %w", t.Name, err)
		}
		if failed {
			return nil, false, true, nil
		}
	}
	if t.Result == nil {
		return body, false, false, nil
	}
	if result, err = t.Result.Eval(env); err != nil {
		return nil, false, false, fmt.Errorf("tool %s: result: %w", t.Name, err)
	}
	return result, false, false, nil
}
