package mapspec

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// MaxConcurrency bounds `concurrency`: rows at once in one slice.
const MaxConcurrency = 10_000

const maxNameChars = 200

// ParseMap reads a map and compiles it against the tools that it may call; tools may be nil for a map without calls.
// The error is Problems: every mistake of the file.
func ParseMap(file string, src []byte, tools *Catalogue, options ...Option) (*Map, error) {
	r := &reporter{file: file}
	root := readFile(r, src)
	if root == nil {
		return nil, r.err()
	}
	p := &mapParser{compiler: newCompiler(r, src), tools: tools, m: &Map{Vars: map[string]any{}}}
	for _, option := range options {
		option(p)
	}
	p.parse(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	p.m.Digest = p.m.digest(root.get("name") != nil)
	return p.m, nil
}

type mapParser struct {
	*compiler
	tools   *Catalogue
	m       *Map
	columns []string // all columns of the map
	earlier []string // those before the one that is being read
	current string

	resolvers   map[string][]string
	anyResolver bool
}

var mapKeys = []string{"version", "name", "key", "vars", "concurrency", "onRowError", "columns", "output", "budget", "finish"}

func (p *mapParser) parse(root *node) {
	if !p.mapping(root, "a map", mapKeys) {
		return
	}
	p.version(root)
	p.m.Name = strings.TrimSuffix(filepath.Base(p.file), filepath.Ext(p.file))
	if n := root.get("name"); n != nil {
		p.m.Name = p.name(n, "the map's name")
	}
	p.vars(root.get("vars"))
	p.key(root.get("key"))
	p.concurrency(root.get("concurrency"))
	if n := root.get("onRowError"); n != nil {
		p.m.FailFast = p.oneOf(n, "onRowError", "isolate", "fail") == "fail"
	}
	p.budget(root.get("budget"))
	p.readColumns(root)
	p.output(root.get("output"))
	p.finish(root.get("finish"))
}

// name reads a name that will stand in headers, logs and listings.
func (p *compiler) name(n *node, what string) string {
	s, ok := p.plain(n, what, "")
	if !ok {
		return ""
	}
	p.checkName(s, n.at, what)
	return s
}

func (p *compiler) checkName(s string, at pos, what string) {
	control := strings.ContainsFunc(s, unicode.IsControl)
	switch {
	case strings.TrimSpace(s) == "":
		p.add(at, "", "%s is empty", what)
	case control || len(s) > maxNameChars:
		p.add(at, "", "%s must be a single line of at most %d characters", what, maxNameChars)
	}
}

func (p *mapParser) vars(n *node) {
	if n == nil || n.kind == kindNull {
		return
	}
	if n.kind != kindMap {
		p.add(n.at, "write {country: DE}", "vars must be a mapping from names to values, not %s", describe(n))
		return
	}
	for _, f := range n.fields {
		p.checkName(f.name, f.at, "a variable's name")
		p.m.Vars[f.name] = nil // known, also when its value is wrong
		if f.value.hasExpr() {
			p.add(f.value.at, "use the expression in a column; $${ is a literal ${", "vars hold values, not expressions")
			continue
		}
		p.m.Vars[f.name], _ = p.template(f.value, noScope, nil).Constant()
	}
}

func (p *mapParser) key(n *node) {
	if n == nil {
		return
	}
	p.m.keyAt = n.at
	switch {
	case n.kind == kindList:
		p.m.Key.Columns = p.texts(n, "key")
		for _, item := range n.items {
			p.m.keyColumnsAt = append(p.m.keyColumnsAt, item.at)
		}
		if len(n.items) == 0 {
			p.add(n.at, "name at least one column, or leave the key out to use the row's position", "key is an empty list")
		}
	case n.kind != kindString:
		p.add(n.at, "write a column, a list of columns, an expression, or position", "key cannot be %s", describe(n))
	case strings.Contains(n.scalar.(string), "${"):
		p.m.Key.Expr = p.template(n, keyScope, p.check)
		if _, fixed := p.m.Key.Expr.Constant(); fixed {
			p.add(n.at, "use a column of the row, as in ${row.email}", "every row would have the same key")
		}
	case n.scalar != "position":
		if s, ok := p.plain(n, "key", "name a column"); ok {
			p.m.Key.Columns, p.m.keyColumnsAt = []string{s}, []pos{n.at}
		}
	}
}

func (p *mapParser) concurrency(n *node) {
	switch {
	case n == nil || n.scalar == "auto":
	case n.kind == kindString:
		p.oneOf(n, "concurrency", "auto")
	default:
		p.m.Concurrency = int(p.whole(n, "concurrency", 1, MaxConcurrency))
	}
}

func (p *mapParser) output(n *node) {
	if n == nil {
		return
	}
	if n.kind != kindMap || len(n.fields) == 0 {
		p.add(n.at, "write {email: \"${row.email}\"}; without `output` all columns are exported", "output must be a mapping from column names to values")
		return
	}
	p.earlier, p.current = p.columns, ""
	for _, f := range n.fields {
		p.checkName(f.name, f.at, "an output column's name")
		p.reserved(f.name, f.at)
		p.m.Output = append(p.m.Output, OutputColumn{Name: f.name, Value: p.template(f.value, columnScope, p.check)})
	}
}

// check reports references to cells and variables that do not exist.
func (p *mapParser) check(r reference, at pos) {
	switch {
	case r.root == "row":
		p.m.rowRefs = append(p.m.rowRefs, rowRef{name: r.name, at: at, test: r.test, whole: r.whole})
	case r.root == "run":
		p.checkRun(r, at)
	case r.whole:
	case r.root == "vars":
		if _, ok := p.m.Vars[r.name]; !ok {
			known := slices.Collect(maps.Keys(p.m.Vars))
			p.add(at, suggest(r.name, known, "vars"), "there is no variable `%s`", r.name)
		}
	case r.root == "answer" && !slices.Contains(answerKeys, r.name):
		p.add(at, suggest(r.name, answerKeys, "fields"), "`answer` has no field `%s`", r.name)
	case r.root == "cells" && !slices.Contains(p.earlier, r.name):
		switch {
		case r.name == p.current:
			p.add(at, "use row or an earlier column", "column `%s` refers to itself", r.name)
		case slices.Contains(p.columns, r.name):
			p.add(at, "move it above this one", "column `%s` comes later: a column sees only the ones above it", r.name)
		default:
			p.add(at, suggest(r.name, p.earlier, "earlier columns"), "there is no column `%s`", r.name)
		}
	}
}
