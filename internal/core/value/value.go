// Package value is the one model of data in Sluice: nil, bool, int64, float64, string, []any and map[string]any, and
// its one text form: JSON with sorted keys. Values are carried unchanged or refused, never rounded or repaired.
package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxExactInt is the largest integer up to which every double is exact (RFC 8259, section 6: the interoperable range).
const MaxExactInt = 1 << 53

// ErrLossy marks a value that JSON, or a reader of JSON, would not carry unchanged.
var ErrLossy = errors.New("value cannot be carried unchanged")

// Append appends the canonical JSON of v to dst.
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendString(dst, v)
	case json.RawMessage:
		return append(dst, v...), nil
	case []any:
		return appendList(dst, v)
	case map[string]any:
		return appendMap(dst, v)
	}
	return dst, fmt.Errorf("%w: a value of type %T", ErrLossy, v)
}

// Encode returns the canonical JSON of v.
func Encode(v any) (json.RawMessage, error) {
	b, err := Append(make([]byte, 0, 64), v)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func appendList(dst []byte, list []any) ([]byte, error) {
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = Append(dst, item); err != nil {
			return dst, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, m map[string]any) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, k); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = Append(dst, m[k]); err != nil {
			return dst, fmt.Errorf("%s: %w", k, err)
		}
	}
	return append(dst, '}'), nil
}

// appendFloat writes the shortest form that reads back as the same double, in the notation of ECMAScript, and
// always with a fraction or an exponent, so that it reads back as a double and not as an integer.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%w: %v has no JSON form", ErrLossy, f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst, nil
}

const hexDigits = "0123456789abcdef"

func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, fmt.Errorf("%w: text that is not valid UTF-8", ErrLossy)
	}
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"'), nil
}

// Decode reads one JSON value. Integers that fit 64 bits stay integers; a number that neither an int64 nor a double
// carries exactly enough (an integer past 64 bits, a magnitude past the doubles) is ErrLossy.
func Decode(b []byte) (any, error) { return decode(b, math.MaxInt64) }

// DecodeExact is Decode for input rows: integers past 2^53 that a double would round are ErrLossy too, because the
// readers of an export may read them as doubles.
func DecodeExact(b []byte) (any, error) { return decode(b, MaxExactInt) }

func decode(b []byte, maxInt int64) (any, error) {
	if s, ok := plainString(b); ok {
		return s, nil
	}
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: text that is not valid UTF-8", ErrLossy)
	}
	p := Parser{Lenient: true}
	p.Reset(b, maxInt)
	v, err := p.Value()
	if err != nil {
		return nil, err
	}
	return v, p.End()
}

// plainString is the fast path for the commonest cell: a string without escapes.
func plainString(b []byte) (string, bool) {
	n := len(b)
	if n < 2 || b[0] != '"' || b[n-1] != '"' {
		return "", false
	}
	for _, c := range b[1 : n-1] {
		if c < 0x20 || c >= 0x80 || c == '\\' || c == '"' {
			return "", false
		}
	}
	return string(b[1 : n-1]), true
}

func number(s string, maxInt int64) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		n, err := strconv.ParseInt(s, 10, 64)
		exact := err == nil && (n <= maxInt && n >= -maxInt || int64(float64(n)) == n && float64(n) != math.MaxInt64+1)
		if !exact {
			return nil, fmt.Errorf("%w: the number %s would be rounded; write it as text", ErrLossy, s)
		}
		if n == 0 && s[0] == '-' {
			return math.Copysign(0, -1), nil
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: the number %s is out of range; write it as text", ErrLossy, s)
	}
	return f, nil
}
