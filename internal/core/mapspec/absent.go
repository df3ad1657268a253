package mapspec

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// In a tool's `missing` and `fail` a field that the answer does not have reads as null: providers leave out what does
// not apply, and `${body.error != null}` must be false for an answer without an error. Everywhere else an absent
// field is an error, because there it is a mistake in the map or a change in the provider's answers.
func absentIsNull(checked *cel.Ast) interpreter.InterpretableDecoratorV2 {
	tests := map[int64]bool{} // has(...) gives false instead
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
			tests[e.ID()] = true
		}
	}))
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		attr, ok := i.(interpreter.InterpretableAttribute)
		if !ok {
			return i, nil
		}
		absent := ref.Val(types.NullValue)
		if tests[i.ID()] {
			absent = types.False
		}
		return &tolerant{InterpretableAttribute: attr, absent: absent}, nil
	}
}

// tolerant gives another value where a selection leads nowhere.
type tolerant struct {
	interpreter.InterpretableAttribute
	absent ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (t *tolerant) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := t.InterpretableAttribute.Exec(frame)
	if err, ok := v.(*types.Err); ok && leadsNowhere(err.Error()) {
		return t.absent
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (t *tolerant) Eval(vars interpreter.Activation) ref.Val {
	return t.Exec(interpreter.AsFrame(vars))
}

func leadsNowhere(reason string) bool {
	return strings.HasPrefix(reason, "no such key") || strings.HasPrefix(reason, "index out of bounds")
}
