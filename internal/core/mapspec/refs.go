package mapspec

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// reference is a use of a variable, and of one of its fields where that is written out.
type reference struct {
	root, name string
	field      string // of what has the name, as in run.calls.cached; empty: none, or not written out
	whole      bool   // the variable as a whole, or a field that is only known when it runs
	test       bool   // only asks has(...)
	offset     int    // bytes into the expression
	at         pos    // in the file
}

// examine lists what a checked expression refers to, and returns its path if it is a plain selection.
func examine(checked *cel.Ast, source string) ([]reference, []string) {
	native := checked.NativeRep()
	x := &examiner{source: source, info: native.SourceInfo()}
	x.visit(native.Expr(), nil)
	path, _ := x.chain(native.Expr())
	if len(path) == 1 && path[0] != "index" && path[0] != "result" && path[0] != "body" {
		path = nil // a variable as a whole is copied: the engine goes on filling `cells`
	}
	return x.refs, path
}

type examiner struct {
	source string
	info   *ast.SourceInfo
	refs   []reference
}

// chain returns root and field names of row.a.b or row["a"].b.
func (x *examiner) chain(e ast.Expr) ([]string, int64) {
	switch e.Kind() {
	case ast.IdentKind:
		if _, known := rootTypes[e.AsIdent()]; known {
			return []string{e.AsIdent()}, e.ID()
		}
	case ast.SelectKind:
		if path, id := x.chain(e.AsSelect().Operand()); path != nil && !e.AsSelect().IsTestOnly() {
			return append(path, e.AsSelect().FieldName()), id
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != "_[_]" || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			break
		}
		name, ok := call.Args()[1].AsLiteral().(types.String)
		if path, id := x.chain(call.Args()[0]); path != nil && ok {
			return append(path, string(name)), id
		}
	}
	return nil, 0
}

// visit walks the expression; local holds the variables of macros, which hide roots of the same name.
func (x *examiner) visit(e ast.Expr, local []string) {
	if path, id := x.chain(e); path != nil && !slices.Contains(local, path[0]) {
		x.add(path, id, false)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		sel := e.AsSelect()
		if path, id := x.chain(sel.Operand()); sel.IsTestOnly() && path != nil && !slices.Contains(local, path[0]) {
			x.add(append(path, sel.FieldName()), id, len(path) == 1)
			return
		}
		x.visit(sel.Operand(), local)
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			x.visit(e.AsCall().Target(), local)
		}
		for _, arg := range e.AsCall().Args() {
			x.visit(arg, local)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			x.visit(item, local)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			x.visit(entry.AsMapEntry().Key(), local)
			x.visit(entry.AsMapEntry().Value(), local)
		}
	case ast.ComprehensionKind:
		x.comprehension(e.AsComprehension(), local)
	}
}

func (x *examiner) comprehension(c ast.ComprehensionExpr, local []string) {
	x.visit(c.IterRange(), local)
	x.visit(c.AccuInit(), local)
	inner := append(append([]string{}, local...), c.IterVar(), c.AccuVar())
	if c.HasIterVar2() {
		inner = append(inner, c.IterVar2())
	}
	x.visit(c.LoopCondition(), inner)
	x.visit(c.LoopStep(), inner)
	x.visit(c.Result(), inner)
}

func (x *examiner) add(path []string, id int64, test bool) {
	loc := x.info.GetStartLocation(id)
	r := reference{root: path[0], test: test, whole: len(path) == 1, offset: byteOffset(x.source, loc.Line(), loc.Column())}
	if len(path) > 1 {
		r.name = path[1]
	}
	if len(path) > 2 {
		r.field = path[2]
	}
	x.refs = append(x.refs, r)
}
