package intake

import (
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxDepth = 200

// parser is a strict JSON reader into the value model. encoding/json replaces lone surrogates, takes the last of
// duplicate keys, and forgets the order of keys: each would change input silently. The bytes are valid UTF-8.
type parser struct {
	b      []byte
	i      int
	maxInt int64  // integers above it must be exact doubles
	buf    []byte // of strings with escapes
	depth  int
}

// syntaxError is a refusal at an offset.
type syntaxError struct {
	off int
	msg string
	err error // value.ErrLossy or nil
}

func (e *syntaxError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.msg
}
func (e *syntaxError) Unwrap() error { return e.err }

func (p *parser) fail(off int, format string, args ...any) error {
	return &syntaxError{off: off, msg: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\n', '\r', '\t':
			p.i++
		default:
			return
		}
	}
}

// unexpected names what is found where something else is needed.
func (p *parser) unexpected(want string) error {
	if p.i >= len(p.b) {
		return p.fail(p.i, "the JSON ends early; %s is missing", want)
	}
	r, _ := utf8.DecodeRune(p.b[p.i:])
	return p.fail(p.i, "found %q where %s should be", r, want)
}

func (p *parser) expect(c byte) error {
	p.space()
	if p.i >= len(p.b) || p.b[p.i] != c {
		return p.unexpected("'" + string(c) + "'")
	}
	p.i++
	return nil
}

// take consumes c if it is next.
func (p *parser) take(c byte) bool {
	p.space()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// end refuses anything after the value.
func (p *parser) end() error {
	if p.space(); p.i < len(p.b) {
		return p.unexpected("the end")
	}
	return nil
}

func (p *parser) value() (any, error) {
	p.space()
	if p.i >= len(p.b) {
		return nil, p.unexpected("a value")
	}
	switch c := p.b[p.i]; c {
	case '"':
		return p.str()
	case '{':
		return p.object()
	case '[':
		return p.list()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return p.number()
		}
	}
	return nil, p.unexpected("a value")
}

func (p *parser) word(w string) error {
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return p.unexpected(w)
	}
	p.i += len(w)
	return nil
}

func (p *parser) descend() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail(p.i, "nested more than %d levels deep", maxDepth)
	}
	return nil
}

func (p *parser) list() (any, error) {
	if err := p.descend(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.i++
	list := []any{}
	if p.take(']') {
		return list, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if p.take(']') {
			return list, nil
		}
		if err := p.expect(','); err != nil {
			return nil, err
		}
	}
}

func (p *parser) object() (any, error) {
	if err := p.descend(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	m := map[string]any{}
	err := p.members(func(key []byte, off int) error {
		k := string(key)
		if _, seen := m[k]; seen {
			return p.fail(off, "the key %q occurs twice in one object", k)
		}
		v, err := p.value()
		m[k] = v
		return err
	})
	return m, err
}

// members calls member for each key, positioned before its value. The key is valid until member parses on.
func (p *parser) members(member func(key []byte, off int) error) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	if p.take('}') {
		return nil
	}
	for {
		p.space()
		off := p.i
		if p.i >= len(p.b) || p.b[p.i] != '"' {
			return p.unexpected("a key in quotes")
		}
		key, err := p.raw()
		if err != nil {
			return err
		}
		if err := p.expect(':'); err != nil {
			return err
		}
		if err := member(key, off); err != nil {
			return err
		}
		if p.take('}') {
			return nil
		}
		if err := p.expect(','); err != nil {
			return err
		}
	}
}
