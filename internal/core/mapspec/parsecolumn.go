package mapspec

import (
	"maps"
	"slices"
	"strings"
)

var (
	columnKinds = []string{"value", "call", "waterfall", "event", "sleep", "resolve"}
	columnKeys  = map[string][]string{
		"value":     {"name", "value", "when", "onError"},
		"call":      {"name", "call", "with", "when", "result", "onError"},
		"waterfall": {"name", "waterfall", "when", "otherwise", "onError"},
		"event":     {"name", "event", "when", "result", "onError"},
		"sleep":     {"name", "sleep", "when", "onError"},
		"resolve":   {"name", "resolve", "with", "when", "onError"},
	}
	stepKeys = []string{"call", "with", "accept", "result"}
)

// kindsText lists the keys of which a column has one.
const kindsText = "`value:`, `call:`, `waterfall:`, `event:`, `sleep:` or `resolve:`"

// statusColumns are what an export adds itself.
var statusColumns = []string{"_status", "_error"}

func (p *mapParser) readColumns(root *node) {
	n := root.get("columns")
	switch {
	case n == nil:
		p.add(root.at, "add `columns:` with at least one column", "the columns are missing")
		return
	case n.kind != kindList || len(n.items) == 0:
		p.add(n.at, "write `- name: ...` for each", "columns must be a list of at least one column, not %s", describe(n))
		return
	}
	for _, item := range n.items {
		if s, ok := nameOf(item); ok {
			p.columns = append(p.columns, s)
		}
	}
	for _, item := range n.items {
		p.column(item)
	}
}

func nameOf(n *node) (string, bool) {
	name := n.get("name")
	if name == nil {
		return "", false
	}
	s, ok := name.scalar.(string)
	return s, ok
}

func (p *mapParser) column(n *node) {
	if n.kind != kindMap {
		p.add(n.at, "write `name:` and "+kindsText, "a column must be a mapping, not %s", describe(n))
		return
	}
	kind := p.columnKind(n)
	if kind == "" {
		return
	}
	p.columnFields(n, kind)
	col := Column{}
	if name := n.get("name"); name == nil {
		p.add(n.at, "add `name:`", "a column needs a name")
	} else {
		col.Name = p.name(name, "a column's name")
		p.reserved(col.Name, name.at)
		if slices.Contains(p.earlier, col.Name) {
			p.add(name.at, "give each column its own name", "there are two columns named `%s`", col.Name)
		}
	}
	p.current = col.Name
	p.fill(&col, n, kind)
	p.m.Columns = append(p.m.Columns, col)
	if col.Name != "" {
		p.earlier = append(p.earlier, col.Name)
	}
}

func (p *mapParser) reserved(name string, at pos) {
	if slices.Contains(statusColumns, name) {
		p.add(at, "choose another name", "`%s` is a column that exports add themselves", name)
	}
}

// columnKind finds the one key that says how the column is filled.
func (p *mapParser) columnKind(n *node) string {
	kind := ""
	for _, f := range n.fields {
		switch {
		case slices.Contains(columnKinds, f.name):
			if kind != "" {
				p.add(f.at, "keep one of them", "a column cannot have both `%s` and `%s`", kind, f.name)
				continue
			}
			kind = f.name
		}
	}
	if kind == "" {
		p.unknownKeys(n, append([]string{"name", "when", "onError", "with", "result", "otherwise"}, columnKinds...))
		p.add(n.at, "add "+kindsText, "nothing says how to fill this column")
		if name, ok := nameOf(n); ok {
			p.earlier = append(p.earlier, name)
		}
	}
	return kind
}

func (p *mapParser) columnFields(n *node, kind string) {
	for _, f := range n.fields {
		switch {
		case slices.Contains(columnKeys[kind], f.name) || slices.Contains(columnKinds, f.name):
		case f.name == "accept":
			p.add(f.at, "use a waterfall with one step", "`accept` belongs to a step of a waterfall")
		case f.name == "otherwise":
			p.add(f.at, "for a cell that fails use onError", "`otherwise` belongs to a waterfall")
		case kind == "waterfall" && (f.name == "with" || f.name == "result"):
			p.add(f.at, "move it into the steps", "`%s` belongs to the steps of the waterfall", f.name)
		default:
			p.add(f.at, suggest(f.name, columnKeys[kind], "keys"), "a %s column has no key `%s`", kind, f.name)
		}
	}
}

func (p *mapParser) unknownKeys(n *node, known []string) {
	for _, f := range n.fields {
		if !slices.Contains(known, f.name) {
			p.add(f.at, suggest(f.name, known, "keys"), "a column has no key `%s`", f.name)
		}
	}
}

func (p *mapParser) fill(col *Column, n *node, kind string) {
	if when := n.get("when"); when != nil {
		col.When = p.condition(when, columnScope, p.check)
	}
	switch kind {
	case "value":
		col.Value = p.template(n.get("value"), columnScope, p.check)
	case "call":
		col.Steps = []Step{p.step(n, columnScope, stepScope)}
	case "waterfall":
		col.Waterfall = true
		p.waterfall(col, n)
	case "event":
		p.event(col, n)
	case "sleep":
		p.sleep(col, n)
	case "resolve":
		p.resolve(col, n)
	}
	if on := n.get("onError"); on != nil {
		col.OnError = p.onError(on, columnScope)
	}
}

// onError reads what stands in for a result that could not be had.
func (p *mapParser) onError(n *node, s *scope) *Template {
	if !p.mapping(n, "onError", []string{"value"}) {
		return nil
	}
	v := n.get("value")
	if v == nil {
		p.add(n.at, "write {value: null}", "onError needs a value")
		return nil
	}
	return p.template(v, s, p.check)
}

func (p *mapParser) waterfall(col *Column, n *node) {
	steps := n.get("waterfall")
	if steps.kind != kindList || len(steps.items) == 0 {
		p.add(steps.at, "write `- {call: ..., with: {...}}` for each", "a waterfall must be a list of at least one call, not %s", describe(steps))
	}
	for _, item := range steps.items {
		if !p.mapping(item, "a step of a waterfall", stepKeys) {
			continue
		}
		if item.get("call") == nil {
			p.add(item.at, "add `call:`", "a step of a waterfall needs a call")
			continue
		}
		col.Steps = append(col.Steps, p.step(item, columnScope, stepScope))
	}
	if other := n.get("otherwise"); other != nil {
		col.Otherwise = p.template(other, columnScope, p.check)
	}
}

// step reads a call: the fields are the same in a column, in a waterfall and in `finish`. What its `with` sees is asks,
// what `accept` and `result` see is keeps.
func (p *mapParser) step(n *node, asks, keeps *scope) Step {
	var s Step
	s.Tool = p.tool(n.get("call"))
	with := n.get("with")
	if with == nil || with.kind == kindNull {
		with = &node{kind: kindMap, at: n.get("call").at}
	}
	s.With = p.template(with, asks, p.check)
	p.checkWith(s, with)
	if a := n.get("accept"); a != nil {
		s.Accept = p.condition(a, keeps, p.check)
	}
	if r := n.get("result"); r != nil {
		s.Result = p.template(r, keeps, p.check)
	}
	return s
}

func (p *mapParser) tool(n *node) *Tool {
	name, ok := p.plain(n, "call", "name a tool of the catalogue")
	if !ok {
		return nil
	}
	if p.tools == nil {
		p.add(n.at, "pass --tools", "no tool catalogue given for the call of `%s`", name)
		return nil
	}
	t, ok := p.tools.Tools[name]
	if !ok {
		p.add(n.at, suggest(name, slices.Collect(maps.Keys(p.tools.Tools)), "tools"), "there is no tool `%s`", name)
	}
	return t
}

// checkWith compares the inputs that are written out with those that the tool declares.
func (p *mapParser) checkWith(s Step, with *node) {
	if with.kind != kindMap {
		if e, ok := s.With.root.(*expr); with.kind != kindString || ok && !e.mayBe(mapKind) || !ok && !strings.Contains(s.With.Source(), "${") {
			p.add(with.at, "write {name: value}", "`with` must be a mapping, not %s", describe(with))
		}
		return
	}
	if s.Tool == nil || s.Tool.Input == nil {
		return
	}
	for _, f := range with.fields {
		param, ok := s.Tool.param(f.name)
		if !ok {
			p.add(f.at, suggest(f.name, s.Tool.paramNames(), "inputs"), "tool `%s` has no input `%s`", s.Tool.Name, f.name)
			continue
		}
		p.checkParam(s.With.field(f.name), param, f.value)
	}
	for _, param := range s.Tool.Input {
		if !param.Optional && with.get(param.Name) == nil {
			p.add(with.at, "add `"+param.Name+"` to `with`", "tool `%s` needs the input `%s` (%s)", s.Tool.Name, param.Name, param.Type)
		}
	}
}
