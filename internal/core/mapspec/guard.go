package mapspec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// CEL counts the cost of a call when it has returned. For three functions that is too late, because their text can be
// as long as the product of their arguments: one call could exhaust memory. They are measured before they run.
var measured = map[string]func(args []ref.Val) int{
	"replace": replaceSize, "join": joinSize, "format": formatSize,
}

var errTextTooLarge = fmt.Errorf("its text would be larger than %d MB", MaxValueBytes>>20)

// guard replaces calls of measured functions by ones that refuse to build an oversized text.
func guard(env *cel.Env) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || measured[call.Function()] == nil {
			return i, nil
		}
		run, err := binding(env, call.Function(), call.OverloadID())
		if err != nil {
			return nil, err
		}
		size := measured[call.Function()]
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if size(args) > MaxValueBytes {
				return types.WrapErr(errTextTooLarge)
			}
			return run(args...)
		}), nil
	}
}

// binding finds the implementation of one overload, or of the function's only dispatcher.
func binding(env *cel.Env, name, overload string) (functions.FunctionOp, error) {
	overloads, err := env.Functions()[name].Bindings()
	if err != nil {
		return nil, err
	}
	for _, id := range []string{overload, name} {
		for _, o := range overloads {
			if o.Operator != id {
				continue
			}
			switch {
			case o.Function != nil:
				return o.Function, nil
			case o.Binary != nil:
				return func(args ...ref.Val) ref.Val { return o.Binary(args[0], args[1]) }, nil
			case o.Unary != nil:
				return func(args ...ref.Val) ref.Val { return o.Unary(args[0]) }, nil
			}
		}
	}
	return nil, errors.New("no implementation of " + name)
}

// replaceSize bounds the text of s.replace(old, new[, n]); other types are left to the function to refuse.
func replaceSize(args []ref.Val) int {
	s, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	with, ok3 := args[2].(types.String)
	if !ok1 || !ok2 || !ok3 {
		return 0
	}
	count := strings.Count(string(s), string(old))
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			count = int(min(types.Int(count), n))
		}
	}
	return sum(len(s), product(count, max(0, len(with)-len(old))))
}

func joinSize(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	size, count := 0, 0
	for it := list.Iterator(); it.HasNext() == types.True; count++ {
		if s, ok := it.Next().(types.String); ok {
			size = sum(size, len(s))
		}
	}
	if len(args) > 1 {
		if separator, ok := args[1].(types.String); ok {
			size = sum(size, product(count, len(separator)))
		}
	}
	return size
}

// formatSize takes the size of every argument once for each clause: an upper bound, as clauses name no argument.
func formatSize(args []ref.Val) int {
	s, ok1 := args[0].(types.String)
	list, ok2 := args[1].(traits.Lister)
	if !ok1 || !ok2 {
		return 0
	}
	budget := MaxValueBytes
	for it := list.Iterator(); it.HasNext() == types.True; {
		if _, err := convert(it.Next(), &budget, 0); errors.Is(err, errTooLarge) {
			return MaxValueBytes + 1
		}
	}
	return sum(len(s), MaxValueBytes-budget)
}

// sum and product stop at what is too large anyway, so that they cannot overflow.
func sum(a, b int) int { return min(a+b, MaxValueBytes+1) }

func product(a, b int) int {
	if a > 0 && b > MaxValueBytes/a {
		return MaxValueBytes + 1
	}
	return a * b
}
