package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sluice/internal/core/value"
)

// columnSet learns the columns of objects in the order in which they first appear.
type columnSet struct {
	names []string
	index map[string]int
	seen  []int64 // the row in which each column was last met
	next  int     // the column to expect: rows mostly have the same order
}

func newColumnSet() *columnSet { return &columnSet{index: map[string]int{}} }

// column is the number of a key, or -1 if there are too many.
func (c *columnSet) column(key []byte) int {
	i := c.next
	if i >= len(c.names) || c.names[i] != string(key) {
		var known bool
		if i, known = c.index[string(key)]; !known {
			if i = len(c.names); i >= MaxColumns {
				return -1
			}
			name := string(key)
			c.names, c.index[name], c.seen = append(c.names, name), i, append(c.seen, 0)
		}
	}
	c.next = i + 1
	return i
}

// decode reads one object as a row. row is its 1-based number.
func (c *columnSet) decode(p *value.Parser, row int64) ([]any, error) {
	values := make([]any, 0, len(c.names))
	c.next = 0
	name := ""
	err := p.Members(func(key []byte, off int) error {
		i := c.column(key)
		name = ""
		switch {
		case len(bytes.TrimSpace(key)) == 0:
			return p.Fail(off, "a column needs a name, but this key is empty")
		case i < 0:
			return p.Fail(off, "more than %d columns", MaxColumns)
		case c.seen[i] == row:
			return p.Fail(off, "the key %q occurs twice in one object", c.names[i])
		}
		c.seen[i], name = row, c.names[i]
		v, err := p.Value()
		for len(values) <= i {
			values = append(values, nil)
		}
		values[i] = v
		return err
	})
	if err == nil {
		err = p.End()
		name = ""
	}
	if err != nil && name != "" {
		err = &columnError{column: name, err: err}
	}
	return values, err
}

// columnError adds the column to a refusal.
type columnError struct {
	column string
	err    error
}

func (e *columnError) Error() string { return fmt.Sprintf("column %q: %v", e.column, e.err) }
func (e *columnError) Unwrap() error { return e.err }

// jsonlSource reads one object per line; blank lines are skipped.
type jsonlSource struct {
	base
	lines   *buffer
	columns *columnSet
	line    int64
	p       value.Parser
}

func (s *jsonlSource) Columns() []string { return s.columns.names }
func (s *jsonlSource) Typed() bool       { return true }

func (s *jsonlSource) Next() (Row, error) {
	if s.done() {
		return Row{}, io.EOF
	}
	for {
		line, err := s.lines.line()
		s.line++
		switch {
		case errors.Is(err, io.EOF) && s.rows == 0:
			return Row{}, &PosError{Name: s.name, Msg: "no rows", Err: ErrEmpty}
		case errors.Is(err, errLong):
			return Row{}, &PosError{Name: s.name, Line: s.line, Msg: fmt.Sprintf("the line is longer than %d MB", MaxRecord>>20)}
		case err != nil:
			return Row{}, err
		}
		s.lines.consume(len(line))
		if len(bytes.Trim(line, " \t\r\n")) == 0 {
			continue
		}
		s.rows++
		s.p.Reset(line, value.MaxExactInt)
		values, err := s.columns.decode(&s.p, s.rows)
		if err != nil {
			return Row{}, s.refuse(line, err)
		}
		return Row{Line: s.line, Values: values}, nil
	}
}

func (s *jsonlSource) refuse(line []byte, err error) error {
	pos := &PosError{Name: s.name, Line: s.line, Msg: fmt.Sprintf("row %d", s.rows), Err: err}
	if at := new(value.SyntaxError); errors.As(err, &at) {
		pos.Column = int64(utf8.RuneCount(line[:min(at.Offset, len(line))])) + 1
	}
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("[")) && s.rows == 1 {
		pos.Msg = "JSONL has one object per line, and this looks like a JSON array; name the file .json"
	}
	return pos
}

// arraySource reads an array of objects element by element. A row's Line is the element's number.
type arraySource struct {
	base
	dec     *json.Decoder
	bound   *bounded
	columns *columnSet
	p       value.Parser
	end     bool
}

func openArray(b base, t *text) (Source, error) {
	s := &arraySource{base: b, bound: &bounded{r: t}, columns: newColumnSet()}
	s.dec = json.NewDecoder(s.bound)
	s.bound.left = MaxRecord
	first, err := s.dec.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil, &PosError{Name: b.name, Msg: "no rows", Err: ErrEmpty}
	case err != nil:
		return nil, s.refuse("the JSON array", err)
	case first != json.Delim('['):
		return nil, &PosError{Name: b.name, Msg: "a JSON source is one array of objects, [{...}, ...]; for one object per line name the file .jsonl"}
	}
	return s, nil
}

func (s *arraySource) Columns() []string { return s.columns.names }
func (s *arraySource) Typed() bool       { return true }

func (s *arraySource) Next() (Row, error) {
	if s.end || s.done() {
		return Row{}, io.EOF
	}
	s.bound.left = MaxRecord
	if !s.dec.More() {
		return Row{}, s.finish()
	}
	s.rows++
	element := fmt.Sprintf("element %d", s.rows)
	var raw json.RawMessage
	err := s.dec.Decode(&raw)
	if err == nil && len(raw) > MaxRecord {
		err = errLong // what was read ahead is beyond the bound of bytes
	}
	if err != nil {
		return Row{}, s.refuse(element, err)
	}
	s.p.Reset(raw, value.MaxExactInt)
	values, err := s.columns.decode(&s.p, s.rows)
	if err != nil {
		return Row{}, s.refuse(element, err)
	}
	return Row{Line: s.rows, Values: values}, nil
}

// finish reads the closing bracket and refuses anything after it.
func (s *arraySource) finish() error {
	if _, err := s.dec.Token(); err != nil {
		return s.refuse(fmt.Sprintf("after element %d", s.rows), err)
	}
	s.end = true
	switch _, err := s.dec.Token(); {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return s.refuse("after the array", err)
	}
	return &PosError{Name: s.name, Msg: "there is more after the end of the array"}
}

func (s *arraySource) refuse(where string, err error) error {
	if pos := new(PosError); errors.As(err, &pos) {
		return pos // of the text itself, which knows the line
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &PosError{Name: s.name, Msg: where + ": the file ends before the array does"}
	case errors.Is(err, errLong):
		return &PosError{Name: s.name, Msg: fmt.Sprintf("%s is longer than %d MB", where, MaxRecord>>20)}
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	return &PosError{Name: s.name, Msg: where, Err: &wrapped{msg, err}}
}

// wrapped gives an error another text.
type wrapped struct {
	msg string
	err error
}

func (w *wrapped) Error() string { return w.msg }
func (w *wrapped) Unwrap() error { return w.err }

// bounded is a reader that refuses once more than left bytes have been asked of it. json.Decoder keeps an element
// whole in memory, so this bounds the element.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
