package value

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

func (p *Parser) str() (any, error) {
	b, err := p.Text()
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// Text returns the text of the string at p.i: a part of the input if it has no escapes, otherwise of p.buf.
func (p *Parser) Text() ([]byte, error) {
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
			return nil, p.Fail(i, "a control character (0x%02x) inside a string; write it as \\u%04x", c, c)
		}
	}
	return nil, p.Fail(p.i, "the string that begins here has no end")
}

// escaped goes on where the first escape of a string stands.
func (p *Parser) escaped(open, i int) ([]byte, error) {
	for i < len(p.b) {
		c := p.b[i]
		switch {
		case c == '"':
			p.i = i + 1
			return p.buf, nil
		case c < 0x20:
			return nil, p.Fail(i, "a control character (0x%02x) inside a string; write it as \\u%04x", c, c)
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
	return nil, p.Fail(open, "the string that begins here has no end")
}

// escape appends what the escape at i stands for and returns its length.
func (p *Parser) escape(i int) (int, error) {
	if i+1 >= len(p.b) {
		return 0, p.Fail(i, "the JSON ends inside an escape")
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
		return 0, p.Fail(i, "unknown escape \\%c", c)
	}
	return 2, nil
}

func (p *Parser) unicode(i int) (int, error) {
	r, ok := p.hex(i)
	if !ok {
		return 0, p.Fail(i, "\\u needs four hexadecimal digits")
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
	if p.Lenient {
		p.buf = utf8.AppendRune(p.buf, utf8.RuneError)
		return 6, nil
	}
	return 0, &SyntaxError{Offset: i, err: fmt.Errorf("%w: \\u%04x is half of a surrogate pair, which is no character", ErrLossy, r)}
}

// hex reads the \uXXXX at i.
func (p *Parser) hex(i int) (rune, bool) {
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
func (p *Parser) number() (any, error) {
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
		return nil, p.Fail(start, "this is not a JSON number")
	}
	if p.i < len(p.b) && p.b[p.i] == '.' {
		integer = false
		if p.i++; p.digits() == 0 {
			return nil, p.Fail(start, "this is not a JSON number")
		}
	}
	if p.i < len(p.b) && (p.b[p.i] == 'e' || p.b[p.i] == 'E') {
		integer = false
		if p.i++; p.i < len(p.b) && (p.b[p.i] == '+' || p.b[p.i] == '-') {
			p.i++
		}
		if p.digits() == 0 {
			return nil, p.Fail(start, "this is not a JSON number")
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

func (p *Parser) digits() int {
	start := p.i
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		p.i++
	}
	return p.i - start
}

func (p *Parser) slowNumber(start int, integer bool) (any, error) {
	text := string(p.b[start:p.i])
	if !integer {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	}
	v, err := number(text, p.maxInt)
	if err != nil {
		return nil, &SyntaxError{Offset: start, err: err}
	}
	return v, nil
}
