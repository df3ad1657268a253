package mapspec

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// expr is one compiled expression. It is immutable and safe for concurrent use.
type expr struct {
	source  string
	program cel.Program
	path    []string // a plain selection such as row.email, which needs no interpreter; nil otherwise
	refs    []reference
	result  *cel.Type

	nullIsFalse bool // as a condition
}

// ExprError is an expression that could not be evaluated. The caller adds row and column.
type ExprError struct {
	Source string // the expression, without ${}
	Reason string
}

func (e *ExprError) Error() string {
	source := strings.Join(strings.Fields(e.Source), " ")
	if len(source) > 200 {
		source = source[:200] + "..."
	}
	return fmt.Sprintf("${%s}: %s", strings.ToValidUTF8(source, ""), e.Reason)
}

// exprMistake is a compile error at a byte offset of the expression.
type exprMistake struct {
	offset          int
	message, remedy string
}

func compileExpr(s *scope, source string) (*expr, []exprMistake) {
	if strings.TrimSpace(source) == "" {
		return nil, []exprMistake{{0, "the expression is empty", "write ${row.name}; $${ is a literal ${"}}
	}
	env, err := s.env()
	if err != nil {
		return nil, []exprMistake{{0, err.Error(), ""}}
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, explain(s, env, source, issues)
	}
	options := []cel.ProgramOption{cel.CostLimit(CostLimit), cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(guard(env))}
	if s.absentIsNull {
		options = append(options, cel.CustomDecoratorV2(absentIsNull(checked)))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		return nil, []exprMistake{{0, err.Error(), ""}}
	}
	e := &expr{source: source, program: program, result: checked.OutputType(), nullIsFalse: s.absentIsNull}
	e.refs, e.path = examine(checked, source)
	return e, nil
}

// byteOffset turns CEL's line (from 1) and column (from 0, in characters) into a byte offset.
func byteOffset(source string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(source[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	for i := range source[offset:] {
		if column == 0 {
			return offset + i
		}
		column--
	}
	return len(source)
}

// eval computes the expression as a value of the model.
func (e *expr) eval(env *Env) (any, error) {
	if e.path != nil {
		if v, ok := e.sel(env); ok {
			return v, nil
		}
	}
	v, err := e.run(env)
	if err != nil {
		return nil, err
	}
	return e.convert(v)
}

// binary is eval, but for bytes, which stay what they are.
func (e *expr) binary(env *Env) (any, error) {
	v, err := e.run(env)
	if err != nil {
		return nil, err
	}
	b, ok := v.(types.Bytes)
	switch {
	case !ok:
		return e.convert(v)
	case len(b) > MaxValueBytes:
		return nil, &ExprError{Source: e.source, Reason: errTooLarge.Error()}
	}
	return []byte(b), nil
}

func (e *expr) convert(v ref.Val) (any, error) {
	budget := MaxValueBytes
	out, err := convert(v, &budget, 0)
	if err != nil {
		return nil, &ExprError{Source: e.source, Reason: err.Error()}
	}
	return out, nil
}

// sel follows a plain selection. Whatever it cannot follow is left to CEL, so that there is one set of errors.
func (e *expr) sel(env *Env) (any, bool) {
	v, _ := env.root(e.path[0])
	for _, name := range e.path[1:] {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	if m, ok := v.(map[string]any); ok && m == nil {
		return map[string]any{}, true
	}
	return v, true
}

func (e *expr) run(env *Env) (ref.Val, error) {
	v, _, err := e.program.Eval(&activation{env})
	if err != nil {
		return nil, &ExprError{Source: e.source, Reason: reason(err)}
	}
	return v, nil
}

// reason is an evaluation error in the user's words.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), "internal error: ")
	switch {
	case strings.Contains(text, "actual cost limit exceeded"):
		return fmt.Sprintf("it takes too much work (limit %d cost units)", CostLimit)
	case strings.Contains(text, "no such overload"):
		return "the types do not fit (input columns are text unless the source has types: convert with int() or double(); null has no fields): " + text
	}
	return text
}

func (e *expr) evalBool(env *Env) (bool, error) {
	v, err := e.eval(env)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok && !(v == nil && e.nullIsFalse) {
		return false, &ExprError{Source: e.source, Reason: "it must give true or false, not " + typeName(v)}
	}
	return b, nil
}

// mayBe reports whether the expression can give a value of one of the types, as far as it is known before it runs.
func (e *expr) mayBe(kinds ...types.Kind) bool {
	if e.result == nil {
		return true
	}
	if k := e.result.Kind(); k != types.DynKind && k != types.AnyKind && k != types.TypeParamKind {
		for _, want := range kinds {
			if k == want {
				return true
			}
		}
		return false
	}
	return true
}
