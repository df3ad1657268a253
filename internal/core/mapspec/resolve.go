package mapspec

import (
	"maps"
	"slices"
)

// Resolve is a cell that a function in Go computes.
type Resolve struct {
	Name  string
	With  *Template // evaluates to a map
	Tools []*Tool   // that it may call; empty where the map was read with AnyResolver
}

func (r *Resolve) meaning() any {
	return map[string]any{"name": r.Name, "with": written(r.With)}
}

// Option says what else a map is held against.
type Option func(*mapParser)

// Resolvers are those that there are, with the tools that each may call. Without this option there are none.
func Resolvers(known map[string][]string) Option {
	return func(p *mapParser) { p.resolvers = known }
}

// AnyResolver takes the names of resolvers as they are: for a map that was checked when its run was started, perhaps by
// another program.
func AnyResolver() Option {
	return func(p *mapParser) { p.anyResolver = true }
}

// resolve reads a `resolve` column.
func (p *mapParser) resolve(col *Column, n *node) {
	col.Resolve = &Resolve{}
	with := n.get("with")
	if with == nil || with.kind == kindNull {
		with = &node{kind: kindMap, at: n.get("resolve").at}
	}
	col.Resolve.With = p.template(with, columnScope, p.check)
	p.checkWith(Step{With: col.Resolve.With}, with)

	at := n.get("resolve")
	name, ok := p.plain(at, "resolve", "name a resolver of this program")
	if !ok {
		return
	}
	col.Resolve.Name = name
	if p.anyResolver {
		return
	}
	tools, known := p.resolvers[name]
	if !known {
		p.add(at.at, suggest(name, slices.Collect(maps.Keys(p.resolvers)), "resolvers in this program"), "there is no resolver `%s`", name)
		return
	}
	for _, tool := range tools {
		switch {
		case p.tools == nil:
			p.add(at.at, "pass --tools", "no tool catalogue given for the resolver `%s`, which calls `%s`", name, tool)
		case p.tools.Tools[tool] == nil:
			p.add(at.at, suggest(tool, slices.Collect(maps.Keys(p.tools.Tools)), "tools"), "the resolver `%s` calls the tool `%s`, which is not in the catalogue", name, tool)
		default:
			col.Resolve.Tools = append(col.Resolve.Tools, p.tools.Tools[tool])
		}
	}
}
