package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// csvSource reads RFC 4180 with these freedoms: any of LF, CRLF or (in a file without any LF) CR ends a line; blank
// lines are skipped. It is a parser of its own because encoding/csv turns CRLF inside quotes into LF, and input must
// come through unchanged (M2).
type csvSource struct {
	base
	in      *buffer
	delim   byte
	columns []string
	line    int64  // on which the next record starts
	text    []byte // of a record with quotes, unquoted
	ends    []int  // where each field ends in it
}

func openCSV(b base, t *text, delim byte) (Source, error) {
	s := &csvSource{base: b, in: newBuffer(t), delim: delim, line: 1}
	switch {
	case s.delim == 0:
		head := t.peek()
		s.delim = detectDelimiter(head, t.eol)
	case s.delim == '"' || s.delim < ' ' && s.delim != '\t' || s.delim >= utf8.RuneSelf:
		return nil, &PosError{Name: b.name, Msg: fmt.Sprintf("%q cannot be a delimiter; use , ; | or tab", s.delim)}
	}
	line, header, err := s.record(nil)
	if errors.Is(err, io.EOF) {
		return nil, &PosError{Name: b.name, Msg: "no header and no rows", Err: ErrEmpty}
	}
	if err != nil {
		return nil, err
	}
	s.columns = make([]string, len(header))
	for i, h := range header {
		s.columns[i] = strings.Clone(h.(string))
	}
	return s, checkHeader(b.name, line, s.columns)
}

func (s *csvSource) Columns() []string { return s.columns }
func (s *csvSource) Typed() bool       { return false }

func (s *csvSource) Next() (Row, error) {
	if s.done() {
		return Row{}, io.EOF
	}
	line, values, err := s.record(make([]any, 0, len(s.columns)))
	if err != nil {
		return Row{}, err
	}
	s.rows++
	if len(values) != len(s.columns) {
		return Row{}, &PosError{Name: s.name, Line: line, Msg: fmt.Sprintf(
			"row %d has %d fields, but the header has %d columns", s.rows, len(values), len(s.columns))}
	}
	return Row{Line: line, Values: values}, nil
}

// record appends the next record's fields to dst; it skips blank lines.
func (s *csvSource) record(dst []any) (int64, []any, error) {
	for {
		raw, err := s.in.line()
		if err != nil {
			return 0, nil, s.explain(err)
		}
		at := s.line
		if bytes.IndexByte(raw, '"') >= 0 {
			n, err := s.quoted()
			if err != nil {
				return 0, nil, err
			}
			s.in.consume(n)
			return at, s.fields(dst), nil
		}
		s.in.consume(len(raw))
		s.line++
		if raw = s.trimEnd(raw); len(raw) > 0 {
			return at, split(dst, string(raw), s.delim), nil
		}
	}
}

func (s *csvSource) explain(err error) error {
	if errors.Is(err, errLong) {
		return &PosError{Name: s.name, Line: s.line, Msg: fmt.Sprintf("the record is longer than %d MB", MaxRecord>>20)}
	}
	return err
}

// trimEnd removes the end of a line: LF, CRLF, CR, and a CR that only the end of the file follows.
func (s *csvSource) trimEnd(raw []byte) []byte {
	if n := len(raw); n > 0 && raw[n-1] == s.in.t.eol {
		raw = raw[:n-1]
	}
	if n := len(raw); n > 0 && raw[n-1] == '\r' && s.in.t.eol == '\n' {
		raw = raw[:n-1]
	}
	return raw
}

// split cuts a record without quotes; all fields share the record's memory.
func split(dst []any, line string, delim byte) []any {
	for {
		i := strings.IndexByte(line, delim)
		if i < 0 {
			return append(dst, line)
		}
		dst = append(dst, line[:i])
		line = line[i+1:]
	}
}

func (s *csvSource) fields(dst []any) []any {
	all, start := string(s.text), 0
	for _, end := range s.ends {
		dst = append(dst, all[start:end])
		start = end
	}
	return dst
}

// quoted parses the record at the start of the buffer into text and ends, reading on as needed, and returns its
// length.
func (s *csvSource) quoted() (int, error) {
	for {
		n, open, err := s.parse(s.in.pending(), errors.Is(s.in.err, io.EOF))
		if err != nil {
			return 0, err
		}
		if n > 0 {
			s.line += int64(bytes.Count(s.in.pending()[:n], []byte{s.in.t.eol}))
			if p := s.in.pending(); p[n-1] != s.in.t.eol {
				s.line++
			}
			return n, nil
		}
		switch err := s.in.more(); {
		case err == nil || (errors.Is(err, io.EOF) && open < 0):
		case errors.Is(err, io.EOF):
			return 0, s.refuse(s.in.pending(), open, "a quote opens here and is never closed")
		case errors.Is(err, errLong) && open >= 0:
			return 0, s.refuse(s.in.pending(), open, fmt.Sprintf("a quote opens here and is not closed within %d MB", MaxRecord>>20))
		default:
			return 0, s.explain(err)
		}
	}
}

// parse reads one record from b. n is 0 if b ends before the record does; open is then the offset of a quote that
// is still open, or -1.
func (s *csvSource) parse(b []byte, last bool) (n, open int, err error) {
	s.text, s.ends = s.text[:0], s.ends[:0]
	for i := 0; ; {
		if i < len(b) && b[i] == '"' {
			end := s.unquote(b, i+1)
			if end < 0 {
				return 0, i, nil
			}
			i = end
		} else {
			end := s.bareEnd(b, i)
			if q := bytes.IndexByte(b[i:end], '"'); q >= 0 {
				return 0, -1, s.refuse(b, i+q, `a quote inside a field that does not begin with one; write the field as "..." with "" for each quote`)
			}
			if end == len(b) && !last {
				return 0, -1, nil
			}
			bare := b[i:end]
			if end == len(b) || b[end] == s.in.t.eol {
				bare = s.trimEnd(bare)
			}
			s.text, i = append(s.text, bare...), end
		}
		s.ends = append(s.ends, len(s.text))
		rest := b[i:]
		switch {
		case len(rest) == 0 && last, string(rest) == "\r" && last:
			return len(b), -1, nil
		case len(rest) == 0, string(rest) == "\r":
			return 0, -1, nil
		case rest[0] == s.delim:
			i++
		case rest[0] == s.in.t.eol:
			return i + 1, -1, nil
		case rest[0] == '\r' && rest[1] == s.in.t.eol:
			return i + 2, -1, nil
		default:
			return 0, -1, s.refuse(b, i, `text after a closing quote; write "" for a quote inside a field`)
		}
	}
}

// unquote appends the field whose text begins at i, and returns the offset after its closing quote, or -1 if b has
// none. A quote at the very end of b counts as closing; parse then asks for more unless b is the last.
func (s *csvSource) unquote(b []byte, i int) int {
	for {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return -1
		}
		s.text = append(s.text, b[i:i+q]...)
		i += q + 1
		if i >= len(b) || b[i] != '"' {
			return i
		}
		s.text = append(s.text, '"')
		i++
	}
}

// bareEnd is the offset of the delimiter or line end that ends the field at i, or len(b).
func (s *csvSource) bareEnd(b []byte, i int) int {
	for j := i; j < len(b); j++ {
		if b[j] == s.delim || b[j] == s.in.t.eol {
			return j
		}
	}
	return len(b)
}

// refuse makes an error for offset i of the record at the start of b.
func (s *csvSource) refuse(b []byte, i int, msg string) error {
	before := b[:i]
	line := s.line + int64(bytes.Count(before, []byte{s.in.t.eol}))
	start := bytes.LastIndexByte(before, s.in.t.eol) + 1
	return &PosError{Name: s.name, Line: line, Column: int64(utf8.RuneCount(before[start:])) + 1, Msg: msg}
}
