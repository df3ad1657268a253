package mapspec

import (
	"errors"
	"fmt"
	"maps"

	"github.com/google/cel-go/common/types"
)

const mapKind = types.MapKind

// paramTypes are the types that a tool's input can declare, with the kinds of CEL value that can become one.
var paramTypes = map[string][]types.Kind{
	"string":  {types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind},
	"number":  {types.DoubleKind, types.IntKind, types.UintKind},
	"integer": {types.IntKind, types.UintKind},
	"boolean": {types.BoolKind},
	"list":    {types.ListKind},
	"map":     {types.MapKind},
	"any":     nil,
}

func (t *Tool) param(name string) (Param, bool) {
	for _, p := range t.Input {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

func (t *Tool) paramNames() []string {
	names := make([]string, len(t.Input))
	for i, p := range t.Input {
		names[i] = p.Name
	}
	return names
}

// accepts reports whether v is of the parameter's type. Nothing is converted, but an integer is a number.
func (p Param) accepts(v any) bool {
	switch v.(type) {
	case nil:
		return p.Optional || p.Type == "any"
	case bool:
		return p.Type == "boolean" || p.Type == "any"
	case int64:
		return p.Type == "integer" || p.Type == "number" || p.Type == "any"
	case float64:
		return p.Type == "number" || p.Type == "any"
	case string:
		return p.Type == "string" || p.Type == "any"
	case []any:
		return p.Type == "list" || p.Type == "any"
	case map[string]any:
		return p.Type == "map" || p.Type == "any"
	}
	return false
}

// mismatch is the message for a value of another type.
func (p Param) mismatch(got string) string {
	text := fmt.Sprintf("input `%s` must be %s, not %s", p.Name, p.Type, got)
	switch {
	case got != "text":
	case p.Type == "integer":
		text += ": convert it with int(...)"
	case p.Type == "number":
		text += ": convert it with double(...)"
	case p.Type == "boolean":
		text += ": convert it with a comparison, such as row.x == \"yes\""
	}
	return text
}

// CheckInput checks a call's `with` against the declared inputs: names, types, and that none is missing. It returns
// the inputs with the absent optional ones as null. All mistakes are in the one error.
func (t *Tool) CheckInput(with map[string]any) (map[string]any, error) {
	if t.Input == nil {
		return with, nil
	}
	var errs []error
	for _, name := range sortedKeys(with) {
		if p, ok := t.param(name); !ok {
			errs = append(errs, fmt.Errorf("there is no input `%s` (%s)", name, suggest(name, t.paramNames(), "inputs")))
		} else if !p.accepts(with[name]) {
			errs = append(errs, errors.New(p.mismatch(typeName(with[name]))))
		}
	}
	for _, p := range t.Input {
		if _, ok := with[p.Name]; !ok && !p.Optional {
			errs = append(errs, fmt.Errorf("input `%s` (%s) is missing", p.Name, p.Type))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return t.complete(with), nil
}

// complete adds the absent optional inputs as null, so that expressions can read them.
func (t *Tool) complete(with map[string]any) map[string]any {
	out := with
	for _, p := range t.Input {
		if _, ok := with[p.Name]; ok || !p.Optional {
			continue
		}
		if len(out) == len(with) {
			out = maps.Clone(with)
			if out == nil {
				out = map[string]any{}
			}
		}
		out[p.Name] = nil
	}
	return out
}

// checkParam reports a written-out input whose type is known to be wrong before anything runs.
func (p *mapParser) checkParam(part part, param Param, n *node) {
	switch part := part.(type) {
	case constant:
		if !param.accepts(part.value) {
			p.add(n.at, "", "%s", param.mismatch(typeName(part.value)))
		}
	case *expr:
		if param.Type != "any" && !part.mayBe(append(paramTypes[param.Type], types.NullTypeKind)...) {
			p.add(n.at, "", "%s", param.mismatch(part.result.String()))
		}
	case text:
		if param.Type != "string" && param.Type != "any" {
			p.add(n.at, "", "%s", param.mismatch("text"))
		}
	}
}
