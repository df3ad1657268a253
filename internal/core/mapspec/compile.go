package mapspec

import (
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
)

// compiler turns nodes into templates and reports mistakes at their place in the file.
type compiler struct {
	*reporter
	src   string
	lines []int // offset of each line in src
	exprs int   // compiled so far

	last       pos // the place that was looked up last, because a line can be as long as a file
	lastOffset int
}

// maxExprs bounds the expressions of a file, because each takes some tenths of a millisecond to compile.
const maxExprs = 5_000

func newCompiler(r *reporter, src []byte) *compiler {
	c := &compiler{reporter: r, src: strings.TrimPrefix(string(src), "\ufeff"), lines: []int{0}}
	for i := range len(c.src) {
		if c.src[i] == '\n' {
			c.lines = append(c.lines, i+1)
		}
	}
	return c
}

// checkRef reports a reference that leads nowhere; at is where it stands.
type checkRef func(r reference, at pos)

// template compiles n for a place where s is visible. It never returns nil, so that callers can go on looking for
// mistakes.
func (c *compiler) template(n *node, s *scope, check checkRef) *Template {
	t := &Template{meaning: n.meaning(), at: n.at}
	t.root = c.part(n, s, check, t)
	return t
}

func (c *compiler) part(n *node, s *scope, check checkRef, t *Template) part {
	switch n.kind {
	case kindString:
		return c.text(n, s, check, t)
	case kindList:
		parts, values, fixed := make(listPart, len(n.items)), make([]any, len(n.items)), true
		for i, item := range n.items {
			parts[i] = c.part(item, s, check, t)
			k, ok := parts[i].(constant)
			values[i], fixed = k.value, fixed && ok
		}
		if fixed {
			return constant{values}
		}
		return parts
	case kindMap:
		m, values, fixed := mapPart{}, make(map[string]any, len(n.fields)), true
		for _, f := range n.fields {
			if strings.Contains(f.name, "${") {
				c.add(f.at, "only values hold expressions; put text that contains `: ` in quotes", "an expression cannot be a key")
			}
			p := c.part(f.value, s, check, t)
			m.names, m.parts = append(m.names, f.name), append(m.parts, p)
			k, ok := p.(constant)
			values[f.name], fixed = k.value, fixed && ok
		}
		if fixed {
			return constant{values}
		}
		return m
	}
	return constant{n.scalar}
}

// text compiles a string. An expression alone keeps the type of its value.
func (c *compiler) text(n *node, s *scope, check checkRef, t *Template) part {
	source := n.scalar.(string)
	pieces, open := split(source)
	if open >= 0 {
		c.add(c.locate(n, source[open:], new(int)), "close it, or write $${ for a literal ${", "`${` without its `}`")
		return constant{source}
	}
	var out text
	from := 0
	for _, p := range pieces {
		if !p.isExpr {
			out = append(out, textPart{literal: p.text})
			continue
		}
		if e := c.expr(n, p.text, s, check, t, &from); e != nil {
			out = append(out, textPart{expr: e})
		}
	}
	switch {
	case len(pieces) == 0:
		return constant{""}
	case len(pieces) == 1 && !pieces[0].isExpr:
		return constant{pieces[0].text}
	case len(pieces) == 1 && len(out) == 1:
		return out[0].expr
	}
	return out
}

func (c *compiler) expr(n *node, source string, s *scope, check checkRef, t *Template, from *int) *expr {
	if c.exprs++; c.exprs > maxExprs {
		if c.exprs == maxExprs+1 {
			c.add(n.at, "split the file", "the file has more than %d expressions", maxExprs)
		}
		return nil
	}
	at := c.locate(n, "${"+source+"}", from)
	exact := at != n.at || c.startsWith(at, "${"+source)
	within := func(offset int) pos {
		if !exact {
			return at
		}
		return advance(at, "${"+source[:min(offset, len(source))])
	}
	e, mistakes := compileExpr(s, source)
	for _, m := range mistakes {
		c.add(within(m.offset), m.remedy, "%s", m.message)
	}
	if e == nil {
		return nil
	}
	t.refs = append(t.refs, e.refs...)
	for i := range e.refs {
		r := &t.refs[len(t.refs)-len(e.refs)+i]
		r.at = within(r.offset)
		if check != nil {
			check(*r, r.at)
		}
	}
	return e
}

// locate finds text at or after *from bytes behind the start of n, and moves *from past it. Text that is written
// differently in the file (escapes, folded lines) is placed at the start of n.
func (c *compiler) locate(n *node, text string, from *int) pos {
	start, ok := c.offset(n.at)
	if !ok {
		return n.at
	}
	window := min(len(c.src), start+4*len(n.scalar.(string))+256)
	if start+*from >= window {
		return n.at
	}
	i := strings.Index(c.src[start+*from:window], text)
	if i < 0 {
		return n.at
	}
	i += *from
	*from = i + len(text)
	return advance(n.at, c.src[start:start+i])
}

func (c *compiler) startsWith(at pos, text string) bool {
	start, ok := c.offset(at)
	return ok && strings.HasPrefix(c.src[start:], text)
}

func (c *compiler) offset(at pos) (int, bool) {
	if at.line < 1 || at.line > len(c.lines) {
		return 0, false
	}
	offset, col := c.lines[at.line-1], 1
	if c.last.line == at.line && c.last.col <= at.col {
		offset, col = c.lastOffset, c.last.col
	}
	for ; col < at.col; col++ {
		if offset >= len(c.src) || c.src[offset] == '\n' {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(c.src[offset:])
		offset += size
	}
	c.last, c.lastOffset = at, offset
	return offset, true
}

// advance is the place behind text that starts at a place.
func advance(at pos, text string) pos {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		return pos{at.line + strings.Count(text, "\n"), utf8.RuneCountInString(text[i+1:]) + 1}
	}
	return pos{at.line, at.col + utf8.RuneCountInString(text)}
}

// condition compiles a template that must give true or false.
func (c *compiler) condition(n *node, s *scope, check checkRef) *Template {
	t := c.template(n, s, check)
	remedy := "write an expression such as ${row.email != \"\"}"
	switch root := t.root.(type) {
	case constant:
		if _, ok := root.value.(bool); !ok {
			c.add(n.at, remedy, "this must be true or false, not %s", describe(n))
		}
	case *expr:
		if !root.mayBe(types.BoolKind) {
			c.add(n.at, remedy, "this must be true or false, but the expression gives %s", root.result)
		}
	default:
		if len(t.refs) > 0 || n.kind != kindString {
			c.add(n.at, remedy, "this must be true or false, not %s", describe(n))
		}
	}
	return t
}
