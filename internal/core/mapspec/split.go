package mapspec

import "strings"

// piece is a part of a string template: text as it stands, or the source of an expression.
type piece struct {
	text   string
	isExpr bool
	offset int // of the expression in the string, in bytes
}

// split cuts a string at its ${...}; $${ is a literal ${. It returns the offset of a ${ without its }, or -1.
func split(s string) (pieces []piece, open int) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			pieces = append(pieces, piece{text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			text.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			n := exprEnd(s[i+2:])
			if n < 0 {
				return pieces, i
			}
			flush()
			pieces = append(pieces, piece{text: s[i+2 : i+2+n], isExpr: true, offset: i + 2})
			i += 2 + n + 1
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	flush()
	return pieces, -1
}

// exprEnd returns the offset of the } that ends an expression, or -1. Braces of CEL maps nest; those inside CEL's
// string literals and comments do not count.
func exprEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '/':
			if strings.HasPrefix(s[i:], "//") {
				n := strings.IndexByte(s[i:], '\n')
				if n < 0 {
					return commentEnd(s, i)
				}
				i += n
			}
		case '"', '\'':
			i += literalLen(s[i:], isRaw(s, i))
			continue
		}
		i++
	}
	return -1
}

// commentEnd serves "${x // why}" on a single line: there the last } ends the expression.
func commentEnd(s string, from int) int {
	if n := strings.LastIndexByte(s[from:], '}'); n >= 0 {
		return from + n
	}
	return -1
}

// isRaw reports whether the quote at i opens a raw literal: r"..." (also br"..." and rb"...").
func isRaw(s string, i int) bool {
	start := i
	for start > 0 && strings.IndexByte("rRbB", s[start-1]) >= 0 {
		start--
	}
	if start > 0 && isNameByte(s[start-1]) {
		return false // the end of a name, as in `bar"x"`, which CEL refuses anyway
	}
	return strings.ContainsAny(s[start:i], "rR")
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// literalLen is the length of the string literal at the start of s; an unclosed one takes all of s.
func literalLen(s string, raw bool) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		quote = triple
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return len(s)
}
