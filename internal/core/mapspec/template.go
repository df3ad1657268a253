package mapspec

import (
	"slices"
	"strconv"
	"strings"

	"sluice/internal/core/value"
)

// Template is a compiled YAML value: literals, texts with ${...}, lists and maps of them. It is immutable and safe
// for concurrent use.
type Template struct {
	root    part
	meaning any // the value as written, for digests
	refs    []reference
	at      pos
}

// part is a piece of a template.
type part interface {
	eval(env *Env) (any, error)
}

// Eval computes the template's value. The value may share memory with env and with the template: it must not be
// changed. An expression's error is an *ExprError.
func (t *Template) Eval(env *Env) (any, error) { return t.root.eval(env) }

// EvalBool computes a condition; a value other than true or false is an error.
func (t *Template) EvalBool(env *Env) (bool, error) {
	switch root := t.root.(type) {
	case *expr:
		return root.evalBool(env)
	case constant:
		if b, ok := root.value.(bool); ok {
			return b, nil
		}
	}
	return false, &ExprError{Source: t.Source(), Reason: "it must give true or false"}
}

// Source is the template as written: the text of a text, otherwise JSON.
func (t *Template) Source() string {
	if s, ok := t.meaning.(string); ok {
		return s
	}
	b, err := value.Encode(t.meaning)
	if err != nil {
		return ""
	}
	return string(b)
}

// Constant returns the template's value if it has no expressions.
func (t *Template) Constant() (any, bool) {
	c, ok := t.root.(constant)
	return c.value, ok
}

// field returns the part of a mapping's entry, or nil.
func (t *Template) field(name string) part {
	switch root := t.root.(type) {
	case mapPart:
		if i := slices.Index(root.names, name); i >= 0 {
			return root.parts[i]
		}
	case constant:
		if m, ok := root.value.(map[string]any); ok {
			return constant{m[name]}
		}
	}
	return nil
}

// Cells returns the names of the earlier columns that the template refers to; all means that it may read any of them.
func (t *Template) Cells() (names []string, all bool) { return t.fields("cells") }

// Rows returns the names of the input columns that the template refers to; all means that it may read any of them.
func (t *Template) Rows() (names []string, all bool) { return t.fields("row") }

// Reads reports whether the template refers to a variable, such as row or index, in whole or in part.
func (t *Template) Reads(root string) bool {
	return t != nil && slices.ContainsFunc(t.refs, func(r reference) bool { return r.root == root })
}

func (t *Template) fields(root string) (names []string, all bool) {
	if t == nil {
		return nil, false
	}
	for _, r := range t.refs {
		switch {
		case r.root != root:
		case r.whole:
			all = true
		case !slices.Contains(names, r.name):
			names = append(names, r.name)
		}
	}
	return names, all
}

type constant struct{ value any }

func (c constant) eval(*Env) (any, error) { return c.value, nil }

// text is a string with expressions inside.
type text []textPart

type textPart struct {
	literal string
	expr    *expr // nil: literal
}

func (t text) eval(env *Env) (any, error) {
	var b strings.Builder
	for _, p := range t {
		if p.expr == nil {
			b.WriteString(p.literal)
			continue
		}
		v, err := p.expr.eval(env)
		if err != nil {
			return nil, err
		}
		s, err := Text(v)
		if err != nil {
			return nil, &ExprError{Source: p.expr.source, Reason: err.Error()}
		}
		if b.Len()+len(s) > MaxValueBytes {
			return nil, &ExprError{Source: p.expr.source, Reason: errTooLarge.Error()}
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// Text is how a value reads inside text: null is empty, numbers in their shortest form, lists and maps as JSON.
func Text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	b, err := value.Encode(v)
	if err != nil {
		return "", err
	}
	if _, ok := v.(float64); ok {
		return strings.TrimSuffix(string(b), ".0"), nil
	}
	return string(b), nil
}

type listPart []part

func (l listPart) eval(env *Env) (any, error) {
	out := make([]any, len(l))
	for i, p := range l {
		v, err := p.eval(env)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

type mapPart struct {
	names []string
	parts []part
}

func (m mapPart) eval(env *Env) (any, error) {
	out := make(map[string]any, len(m.names))
	for i, name := range m.names {
		v, err := m.parts[i].eval(env)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}
