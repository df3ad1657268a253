package mapspec

import "slices"

// kind is what a node of the file is.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindList
	kindMap
)

func (k kind) String() string {
	return [...]string{"null", "true or false", "a whole number", "a number", "text", "a list", "a mapping"}[k]
}

// node is a value of the file with its place. Aliases are already replaced by what they stand for.
type node struct {
	kind   kind
	at     pos
	scalar any    // nil, bool, int64, float64, string
	text   string // a number as written
	items  []*node
	fields []field
}

// field is one entry of a mapping; keys are unique.
type field struct {
	name  string
	at    pos
	value *node
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// meaning is the node as a plain value, expressions as written.
func (n *node) meaning() any {
	switch n.kind {
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.meaning()
		}
		return list
	case kindMap:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			m[f.name] = f.value.meaning()
		}
		return m
	}
	return n.scalar
}

// hasExpr reports whether a text in n holds an expression.
func (n *node) hasExpr() bool {
	if s, ok := n.scalar.(string); ok {
		pieces, open := split(s)
		return open >= 0 || slices.ContainsFunc(pieces, func(p piece) bool { return p.isExpr })
	}
	return slices.ContainsFunc(n.items, (*node).hasExpr) ||
		slices.ContainsFunc(n.fields, func(f field) bool { return f.value.hasExpr() })
}
