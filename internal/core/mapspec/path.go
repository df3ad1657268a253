package mapspec

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// path is a tool's path: segments between slashes, each of literal pieces and values.
type path []segment

type segment []textPart

// path compiles "/companies/{domain}/${input.kind}". {x} is the input x.
func (p *toolParser) path(t *Tool, n *node) {
	t.Path = &Template{meaning: n.meaning(), at: n.at, root: constant{n.scalar}}
	source, ok := n.scalar.(string)
	if !ok {
		p.add(n.at, "write /companies/{domain}", "path must be text, not %s", describe(n))
		return
	}
	pieces, open := split(source)
	if open >= 0 {
		p.add(p.locate(n, source[open:], new(int)), "close it", "`${` without its `}`")
		return
	}
	if source != "" && !strings.HasPrefix(source, "/") {
		p.add(n.at, "begin it with /", "path must begin with a slash; the host is the provider's")
		return
	}
	b := &pathBuilder{toolParser: p, t: t, n: n, path: path{}}
	for _, piece := range pieces {
		if piece.isExpr {
			b.value(piece.text)
		} else {
			b.literal(piece.text)
		}
	}
	b.check()
	t.path = b.path
	t.Path.root = b.path
}

type pathBuilder struct {
	*toolParser
	t    *Tool
	n    *node
	path path
	from int
}

func (b *pathBuilder) append(p textPart) {
	if len(b.path) == 0 {
		b.path = append(b.path, nil)
	}
	last := len(b.path) - 1
	b.path[last] = append(b.path[last], p)
}

func (b *pathBuilder) value(source string) {
	if e := b.expr(b.n, source, b.t.requestScope(), b.checkInputRef(b.t), b.t.Path, &b.from); e != nil {
		b.append(textPart{expr: e})
	}
}

// literal cuts text at its slashes and its {names}.
func (b *pathBuilder) literal(s string) {
	for s != "" {
		i := strings.IndexAny(s, "/{}")
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			b.append(textPart{literal: s[:i]})
			s = s[i:]
			continue
		}
		switch s[0] {
		case '/':
			b.path = append(b.path, nil)
			s = s[1:]
		case '}':
			b.add(b.n.at, "write %7D for the character", "path has a `}` without its `{`")
			return
		default:
			name, rest, closed := strings.Cut(s[1:], "}")
			if !closed || name == "" || strings.ContainsAny(name, "/{") {
				b.add(b.n.at, "write {name}", "path has a `{` that names no input")
				return
			}
			b.input(name)
			s = rest
		}
	}
}

func (b *pathBuilder) input(name string) {
	if b.t.Batch != nil {
		b.add(b.n.at, "use `inputs` in batch.body", "a request for many calls has no single input `%s`", name)
		return
	}
	e, mistakes := compileExpr(inputScope, "input["+strconv.Quote(name)+"]")
	if len(mistakes) > 0 {
		b.add(b.n.at, "use letters and digits", "`%s` is not an input's name", name)
		return
	}
	at := b.locate(b.n, "{"+name+"}", &b.from)
	b.checkInputRef(b.t)(e.refs[0], at)
	b.t.Path.refs = append(b.t.Path.refs, e.refs...)
	b.append(textPart{expr: e})
}

// check refuses literal text that would change where the path leads.
func (b *pathBuilder) check() {
	for i, s := range b.path {
		plain := ""
		for _, part := range s {
			if part.expr != nil {
				plain = ""
				break
			}
			plain += part.literal
		}
		switch {
		case isDots(plain):
			b.add(b.n.at, "write the path out", "path has a segment `%s`", plain)
		case len(s) == 0 && i < len(b.path)-1:
			b.add(b.n.at, "write one slash", "path has an empty segment")
		}
		for _, part := range s {
			b.checkLiteral(part.literal)
		}
	}
}

func (b *pathBuilder) checkLiteral(s string) {
	if strings.ContainsAny(s, "?#") {
		b.add(b.n.at, "put parameters into `query`", "path cannot hold a query or a fragment")
		return
	}
	if _, err := url.PathUnescape(s); err != nil {
		b.add(b.n.at, "write %25 for a percent sign", "path has a `%%` that escapes nothing")
		return
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^`+"`{|}", c) >= 0 {
			b.add(b.n.at, "escape it, as in %20", "path holds %q, which cannot stand in a URL", string(rune(c)))
			return
		}
	}
}

// eval builds the escaped path.
func (p path) eval(env *Env) (any, error) {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		start := b.Len()
		for _, part := range s {
			if part.expr == nil {
				b.WriteString(part.literal)
				continue
			}
			text, err := part.pathText(env)
			if err != nil {
				return nil, err
			}
			b.WriteString(url.PathEscape(text))
		}
		if isDots(b.String()[start:]) {
			return nil, fmt.Errorf("a path segment would be %q, which leads elsewhere", b.String()[start:])
		}
	}
	return b.String(), nil
}

// pathText is one value of a path: never empty, because that would name another resource.
func (p textPart) pathText(env *Env) (string, error) {
	v, err := p.expr.eval(env)
	if err != nil {
		return "", err
	}
	switch v.(type) {
	case nil, []any, map[string]any:
		return "", &ExprError{Source: p.expr.source, Reason: "a path needs text or a number, not " + typeName(v)}
	}
	text, err := Text(v)
	if err != nil {
		return "", &ExprError{Source: p.expr.source, Reason: err.Error()}
	}
	if text == "" {
		return "", &ExprError{Source: p.expr.source, Reason: "a path needs a value, and this one is empty"}
	}
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '/' || c == '\\' }) {
		if isDots(word) {
			return "", &ExprError{Source: p.expr.source, Reason: fmt.Sprintf("%q leads elsewhere in a path", text)}
		}
	}
	return text, nil
}
