package mapspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sluice/internal/core/value"
)

// rowRef is a use of an input column, remembered until the input is known.
type rowRef struct {
	name        string
	at          pos
	test, whole bool
}

// CheckInput checks the input's columns against what the map uses of it: key columns, and references such as row.x.
// A column that the map asks for with has(row.x) may be missing. The error is Problems, placed in file, the map's.
func (m *Map) CheckInput(file string, columns []string) error {
	r := &reporter{file: file}
	for i, name := range m.Key.Columns {
		if !slices.Contains(columns, name) {
			r.add(m.keyColumnsAt[i], suggest(name, columns, "columns"), "the input has no column `%s`, which is the key", name)
		}
	}
	optional := map[string]bool{}
	for _, ref := range m.rowRefs {
		optional[ref.name] = optional[ref.name] || ref.test
	}
	for _, ref := range m.rowRefs {
		if !ref.whole && !optional[ref.name] && !slices.Contains(columns, ref.name) {
			r.add(ref.at, suggest(ref.name, columns, "columns"), "the input has no column `%s`", ref.name)
		}
	}
	return r.err()
}

// SetVars replaces defaults by values given as text, each read as its default's type: text stays text, also where the
// default is null; lists and mappings are JSON.
func (m *Map) SetVars(values map[string]string) error {
	merged := maps.Clone(m.Vars)
	for _, name := range sortedKeys(values) {
		old, ok := m.Vars[name]
		if !ok {
			return fmt.Errorf("the map has no variable `%s` (%s)", name, suggest(name, slices.Collect(maps.Keys(m.Vars)), "vars"))
		}
		v, err := readAs(old, values[name])
		if err != nil {
			return fmt.Errorf("variable `%s` must be %s like its default, not `%s`", name, typeName(old), values[name])
		}
		merged[name] = v
	}
	m.Vars = merged
	return nil
}

func readAs(example any, text string) (any, error) {
	switch example.(type) {
	case bool:
		return strconv.ParseBool(text)
	case int64:
		return strconv.ParseInt(text, 10, 64)
	case float64:
		v, err := value.Decode(json.RawMessage(text))
		switch n := v.(type) {
		case int64:
			return float64(n), err
		case float64:
			return n, err
		}
	case []any:
		v, err := value.Decode(json.RawMessage(text))
		if list, ok := v.([]any); ok {
			return list, err
		}
	case map[string]any:
		v, err := value.Decode(json.RawMessage(text))
		if m, ok := v.(map[string]any); ok {
			return m, err
		}
	default:
		return text, nil
	}
	return nil, fmt.Errorf("%q does not fit", text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
