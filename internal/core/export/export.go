// Package export writes finished tables: CSV and JSONL, to a file that appears whole or not at all, or to standard
// output. It owns the text form of cells; it refuses records of the wrong length and never alters a value.
//
// A CSV cell is written exactly as its value is. In particular a text that a spreadsheet would take for a formula
// (it begins with =, +, - or @) is not changed: whoever opens an export of untrusted data in a spreadsheet imports
// its columns as text.
package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"sluice/internal/core/value"
)

// Writer writes records under the columns that it was made with. It is not safe for concurrent use.
type Writer interface {
	// Write takes one value per column, in the value model. A record of another length, or a value that cannot be
	// carried unchanged (value.ErrLossy), is refused and nothing of it is written.
	Write(rec []any) error
	// Flush writes out what is buffered. The writer can be used further.
	Flush() error
}

// Formats.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// FormatOf tells the format by a file name's extension: .jsonl and .ndjson are JSONL; .csv is CSV, and so is "-".
func FormatOf(name string) (string, error) {
	switch ext := strings.ToLower(path.Ext(name)); {
	case name == "-", ext == ".csv":
		return CSV, nil
	case ext == ".jsonl", ext == ".ndjson":
		return JSONL, nil
	}
	return "", fmt.Errorf("%s: the format cannot be told from the name; let it end in .csv or .jsonl, or pass --format", name)
}

// New returns a Writer of the format. A CSV's header is written with it.
func New(w io.Writer, format string, columns []string) (Writer, error) {
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		if seen[c] {
			return nil, fmt.Errorf("export: the column %q occurs twice", c)
		}
		seen[c] = true
	}
	switch format {
	case CSV:
		return newCSV(w, columns)
	case JSONL, "ndjson":
		return newJSONL(w, columns)
	}
	return nil, fmt.Errorf("export: unknown format %q; known are csv and jsonl", format)
}

// bufferSize is what is gathered before the underlying writer is called.
const bufferSize = 64 << 10

// csvWriter writes RFC 4180, with one freedom: lines end in LF, which the tools around a CSV expect, not in CRLF.
type csvWriter struct {
	w       *bufio.Writer
	columns []string
	line    []byte
	cell    []byte
}

func newCSV(w io.Writer, columns []string) (Writer, error) {
	if len(columns) == 0 {
		return nil, errors.New("export: a CSV needs at least one column")
	}
	c := &csvWriter{w: bufio.NewWriterSize(w, bufferSize), columns: columns}
	header := make([]any, len(columns))
	for i, name := range columns {
		header[i] = name
	}
	return c, c.Write(header)
}

func (c *csvWriter) Write(rec []any) error {
	if len(rec) != len(c.columns) {
		return fmt.Errorf("export: a record of %d values for %d columns", len(rec), len(c.columns))
	}
	c.line = c.line[:0]
	for i, v := range rec {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		var err error
		if c.cell, err = appendCell(c.cell[:0], v); err != nil {
			return fmt.Errorf("column %q: %w", c.columns[i], err)
		}
		c.line = appendQuoted(c.line, c.cell)
	}
	if len(c.line) == 0 {
		c.line = append(c.line, `""`...) // an empty line would be no record at all
	}
	c.line = append(c.line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *csvWriter) Flush() error { return c.w.Flush() }

// appendCell appends the text of a cell: text as it is, nothing for null, JSON for the rest.
func appendCell(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, nil
	case string:
		if !utf8.ValidString(v) {
			return dst, fmt.Errorf("%w: text that is not valid UTF-8", value.ErrLossy)
		}
		return append(dst, v...), nil
	}
	return value.Append(dst, v)
}

// appendQuoted appends the cell so that no reader can see more or less than one cell in it: in quotes if it holds a
// quote, a line end or anything that some reader takes for a delimiter, or space at an end that some trim.
func appendQuoted(dst, cell []byte) []byte {
	if !needsQuotes(cell) {
		return append(dst, cell...)
	}
	dst = append(dst, '"')
	for {
		i := bytes.IndexByte(cell, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, cell[:i]...), `""`...)
		cell = cell[i+1:]
	}
	return append(append(dst, cell...), '"')
}

func needsQuotes(cell []byte) bool {
	if len(cell) == 0 {
		return false
	}
	for _, c := range cell {
		switch c {
		case '"', ',', ';', '\t', '\r', '\n':
			return true
		}
	}
	first, last := cell[0], cell[len(cell)-1]
	if first > ' ' && first < utf8.RuneSelf && last > ' ' && last < utf8.RuneSelf {
		return false
	}
	return len(bytes.TrimSpace(cell)) != len(cell) || bytes.HasPrefix(cell, []byte("\uFEFF"))
}

// jsonlWriter writes one object per line, its keys in the order of the columns.
type jsonlWriter struct {
	w       *bufio.Writer
	columns []string
	keys    [][]byte // `{"a":`, `,"b":`
	line    []byte
}

func newJSONL(w io.Writer, columns []string) (Writer, error) {
	j := &jsonlWriter{w: bufio.NewWriterSize(w, bufferSize), columns: columns}
	for i, name := range columns {
		lead := byte(',')
		if i == 0 {
			lead = '{'
		}
		key, err := value.Append([]byte{lead}, name)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		j.keys = append(j.keys, append(key, ':'))
	}
	return j, nil
}

func (j *jsonlWriter) Write(rec []any) error {
	if len(rec) != len(j.columns) {
		return fmt.Errorf("export: a record of %d values for %d columns", len(rec), len(j.columns))
	}
	j.line = j.line[:0]
	for i, v := range rec {
		j.line = append(j.line, j.keys[i]...)
		var err error
		if j.line, err = value.Append(j.line, v); err != nil {
			return fmt.Errorf("column %q: %w", j.columns[i], err)
		}
	}
	if len(rec) == 0 {
		j.line = append(j.line, '{')
	}
	j.line = append(j.line, '}', '\n')
	_, err := j.w.Write(j.line)
	return err
}

func (j *jsonlWriter) Flush() error { return j.w.Flush() }
