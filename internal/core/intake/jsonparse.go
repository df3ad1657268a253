package intake

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"sluice/internal/core/value"
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

func (p *parser) str() (any, error) {
	b, err := p.raw()
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// raw returns the text of the string at p.i: a part of the input if it has no escapes, otherwise of p.buf.
func (p *parser) raw() ([]byte, error) {
	start := p.i + 1
	for i := start; i < len(p.b); i++ {
		switch c := p.b[i]; {
		case c == '"':
			p.i = i + 1
			return p.b[start:i], nil
		case c == '\\':
			p.buf = append(p.buf[:0], p.b[start:i]...)
			return p.escaped(start-1, i)
		case c < 0x20:
			return nil, p.fail(i, "a control character (0x%02x) inside a string; write it as \\u%04x", c, c)
		}
	}
	return nil, p.fail(p.i, "the string that begins here has no end")
}

// escaped goes on where the first escape of a string stands.
func (p *parser) escaped(open, i int) ([]byte, error) {
	for i < len(p.b) {
		c := p.b[i]
		switch {
		case c == '"':
			p.i = i + 1
			return p.buf, nil
		case c < 0x20:
			return nil, p.fail(i, "a control character (0x%02x) inside a string; write it as \\u%04x", c, c)
		case c != '\\':
			p.buf = append(p.buf, c)
			i++
		default:
			n, err := p.escape(i)
			if err != nil {
				return nil, err
			}
			i += n
		}
	}
	return nil, p.fail(open, "the string that begins here has no end")
}

// escape appends what the escape at i stands for and returns its length.
func (p *parser) escape(i int) (int, error) {
	if i+1 >= len(p.b) {
		return 0, p.fail(i, "the JSON ends inside an escape")
	}
	switch c := p.b[i+1]; c {
	case '"', '\\', '/':
		p.buf = append(p.buf, c)
	case 'b':
		p.buf = append(p.buf, '\b')
	case 'f':
		p.buf = append(p.buf, '\f')
	case 'n':
		p.buf = append(p.buf, '\n')
	case 'r':
		p.buf = append(p.buf, '\r')
	case 't':
		p.buf = append(p.buf, '\t')
	case 'u':
		return p.unicode(i)
	default:
		return 0, p.fail(i, "unknown escape \\%c", c)
	}
	return 2, nil
}

func (p *parser) unicode(i int) (int, error) {
	r, ok := p.hex(i)
	if !ok {
		return 0, p.fail(i, "\\u needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		p.buf = utf8.AppendRune(p.buf, r)
		return 6, nil
	}
	low, ok := p.hex(i + 6)
	if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
		p.buf = utf8.AppendRune(p.buf, pair)
		return 12, nil
	}
	return 0, &syntaxError{off: i, err: fmt.Errorf("%w: \\u%04x is half of a surrogate pair, which is no character", value.ErrLossy, r)}
}

// hex reads the \uXXXX at i.
func (p *parser) hex(i int) (rune, bool) {
	if i+6 > len(p.b) || p.b[i] != '\\' || p.b[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.b[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number by the grammar of RFC 8259.
func (p *parser) number() (any, error) {
	start, n, integer := p.i, int64(0), true
	negative := p.b[p.i] == '-'
	if negative {
		p.i++
	}
	first := p.i
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		n = n*10 + int64(p.b[p.i]-'0') // overflow: see the length below
		p.i++
	}
	digits := p.i - first
	if digits == 0 || digits > 1 && p.b[first] == '0' {
		return nil, p.fail(start, "this is not a JSON number")
	}
	if p.i < len(p.b) && p.b[p.i] == '.' {
		integer = false
		if p.i++; p.digits() == 0 {
			return nil, p.fail(start, "this is not a JSON number")
		}
	}
	if p.i < len(p.b) && (p.b[p.i] == 'e' || p.b[p.i] == 'E') {
		integer = false
		if p.i++; p.i < len(p.b) && (p.b[p.i] == '+' || p.b[p.i] == '-') {
			p.i++
		}
		if p.digits() == 0 {
			return nil, p.fail(start, "this is not a JSON number")
		}
	}
	if integer && digits <= 15 && n != 0 { // below 2^53
		if negative {
			n = -n
		}
		return n, nil
	}
	return p.slowNumber(start, integer)
}

func (p *parser) digits() int {
	start := p.i
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		p.i++
	}
	return p.i - start
}

func (p *parser) slowNumber(start int, integer bool) (any, error) {
	text := string(p.b[start:p.i])
	if !integer {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	}
	v, err := value.Normalize(json.Number(text), p.maxInt)
	if err != nil {
		return nil, &syntaxError{off: start, err: err}
	}
	return v, nil
}
