package value

import (
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxDepth = 200

// Parser is a strict JSON reader into the value model. encoding/json replaces lone surrogates, takes the last of
// duplicate keys, and forgets the order of keys: each would change input silently. The bytes are valid UTF-8.
type Parser struct {
	b      []byte
	i      int
	maxInt int64  // integers above it must be exact doubles
	buf    []byte // of strings with escapes
	depth  int
	// Lenient takes what providers' answers hold and encoding/json takes too: of duplicate keys the last, and the
	// replacement character for half of a surrogate pair.
	Lenient bool
}

// Reset starts at the beginning of b, which is valid UTF-8. Integers above maxInt must be exact doubles.
func (p *Parser) Reset(b []byte, maxInt int64) { p.b, p.i, p.maxInt, p.depth = b, 0, maxInt, 0 }

// Offset is where the parser stands.
func (p *Parser) Offset() int { return p.i }

// Next is the first byte of what comes next; 0 at the end.
func (p *Parser) Next() byte {
	if p.Space(); p.i >= len(p.b) {
		return 0
	}
	return p.b[p.i]
}

// Each reads a list by calling item for each of its members.
func (p *Parser) Each(item func() error) error {
	if err := p.Expect('['); err != nil {
		return err
	}
	if p.Take(']') {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.Take(']') {
			return nil
		}
		if err := p.Expect(','); err != nil {
			return err
		}
	}
}

// SyntaxError is a refusal at an offset.
type SyntaxError struct {
	Offset int
	msg    string
	err    error // ErrLossy or nil
}

func (e *SyntaxError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.msg
}

// Unwrap returns ErrLossy where the value is legal JSON that would not be carried unchanged.
func (e *SyntaxError) Unwrap() error { return e.err }

// Fail refuses what stands at the offset.
func (p *Parser) Fail(off int, format string, args ...any) error {
	return &SyntaxError{Offset: off, msg: fmt.Sprintf(format, args...)}
}

// Space skips white space.
func (p *Parser) Space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\n', '\r', '\t':
			p.i++
		default:
			return
		}
	}
}

// Unexpected names what is found where something else is needed.
func (p *Parser) Unexpected(want string) error {
	if p.i >= len(p.b) {
		return p.Fail(p.i, "the JSON ends early; %s is missing", want)
	}
	r, _ := utf8.DecodeRune(p.b[p.i:])
	return p.Fail(p.i, "found %q where %s should be", r, want)
}

// Expect consumes c, which must be next.
func (p *Parser) Expect(c byte) error {
	p.Space()
	if p.i >= len(p.b) || p.b[p.i] != c {
		return p.Unexpected("'" + string(c) + "'")
	}
	p.i++
	return nil
}

// Take consumes c if it is next.
func (p *Parser) Take(c byte) bool {
	p.Space()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// End refuses anything after the value.
func (p *Parser) End() error {
	if p.Space(); p.i < len(p.b) {
		return p.Unexpected("the end")
	}
	return nil
}

// Value reads a value.
func (p *Parser) Value() (any, error) {
	p.Space()
	if p.i >= len(p.b) {
		return nil, p.Unexpected("a value")
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
	return nil, p.Unexpected("a value")
}

func (p *Parser) word(w string) error {
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return p.Unexpected(w)
	}
	p.i += len(w)
	return nil
}

func (p *Parser) descend() error {
	if p.depth++; p.depth > maxDepth {
		return p.Fail(p.i, "nested more than %d levels deep", maxDepth)
	}
	return nil
}

func (p *Parser) list() (any, error) {
	if err := p.descend(); err != nil {
		return nil, err
	}
	list := []any{}
	err := p.Each(func() error {
		v, err := p.Value()
		list = append(list, v)
		return err
	})
	p.depth--
	return list, err
}

func (p *Parser) object() (any, error) {
	if err := p.descend(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	err := p.Members(func(key []byte, off int) error {
		k := string(key)
		if _, seen := m[k]; seen && !p.Lenient {
			return p.Fail(off, "the key %q occurs twice in one object", k)
		}
		v, err := p.Value()
		m[k] = v
		return err
	})
	p.depth--
	return m, err
}

// Members calls member for each key, positioned before its value. The key is valid until member parses on.
func (p *Parser) Members(member func(key []byte, off int) error) error {
	if err := p.Expect('{'); err != nil {
		return err
	}
	if p.Take('}') {
		return nil
	}
	for {
		p.Space()
		off := p.i
		if p.i >= len(p.b) || p.b[p.i] != '"' {
			return p.Unexpected("a key in quotes")
		}
		key, err := p.Text()
		if err != nil {
			return err
		}
		if err := p.Expect(':'); err != nil {
			return err
		}
		if err := member(key, off); err != nil {
			return err
		}
		if p.Take('}') {
			return nil
		}
		if err := p.Expect(','); err != nil {
			return err
		}
	}
}

// Raw reads a value without building it, and returns its text.
func (p *Parser) Raw() ([]byte, error) {
	p.Space()
	start := p.i
	if err := p.skip(); err != nil {
		return nil, err
	}
	return p.b[start:p.i:p.i], nil
}

func (p *Parser) skip() error {
	switch p.Next() {
	case '"':
		_, err := p.Text()
		return err
	case '{':
		return p.Members(func([]byte, int) error { return p.skip() })
	case '[':
		return p.Each(p.skip)
	}
	_, err := p.Value()
	return err
}
