package intake

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

// Bounds of a source. They are far above what tables have, and keep a malformed file (a quote that is never closed)
// from filling the memory.
const (
	MaxRecord  = 16 << 20 // bytes of one record
	MaxColumns = 5000
)

// Formats of a source.
const (
	CSV   = "csv"
	JSONL = "jsonl"
	JSON  = "json" // one array of objects
)

// Options say how to read a source; the zero Options detect everything.
type Options struct {
	Format    string // CSV, JSONL or JSON; empty: by the name's extension, else by the first character
	Encoding  string // a name of IANA or of the web, such as windows-1252; empty: UTF-8, or UTF-16 by its mark
	Delimiter byte   // of a CSV; 0: detected from the header among comma, semicolon and tab
	Limit     int64  // read at most so many rows; 0: all
}

// Digester is a Source that knows the digest of its bytes. All sources of Open are.
type Digester interface {
	// SourceDigest is the SHA-256 of the raw bytes, in hex, once Next has returned io.EOF. If a limit ended the
	// source early, it covers the beginning that had to be read, in whole blocks of 64 KB: it is the same whenever
	// the same file is read with the same limit, and it says nothing about the rest of the file.
	SourceDigest() string
}

// Open reads the source's beginning and returns its rows. name serves the messages and tells the format by its
// extension (.csv, .tsv, .txt, .jsonl, .ndjson, .json); for other names, and for "-", which is standard input, the
// first character tells it. Errors are *PosError where there is a position, and ErrEmpty for a source without
// anything in it.
//
// CSV is RFC 4180: a header, then rows with as many fields, of text. LF, CRLF or CR end lines; blank lines are
// skipped (an empty cell of a one-column table is written ""); cells are kept as they are, with their spaces and
// line ends. JSONL has one object per line, blank lines skipped; JSON is one array of objects. Their values have
// types and may be nested, their columns are learned in the order in which they appear, and a key that a row lacks
// is null. Refused everywhere: invalid text, NUL bytes, columns without a name or with one that is taken, numbers
// that would be rounded, records over MaxRecord and tables over MaxColumns.
func Open(name string, r io.Reader, opts Options) (Source, error) {
	if opts.Limit < 0 {
		return nil, fmt.Errorf("%s: the limit is %d; it must be positive", displayName(name), opts.Limit)
	}
	d := newDigested(r)
	head, err := d.peek()
	if err != nil {
		return nil, &PosError{Name: name, Msg: "cannot be read", Err: err}
	}
	if len(head) == 0 {
		return nil, &PosError{Name: name, Msg: "no header and no rows", Err: ErrEmpty}
	}
	if err := refuseBinary(name, head); err != nil {
		return nil, err
	}
	enc, label, err := encodingOf(name, opts.Encoding, head)
	if err != nil {
		return nil, err
	}
	t := newText(name, d, enc, label)
	format, err := formatOf(name, opts.Format, t)
	if err != nil {
		return nil, err
	}
	src := base{name: name, raw: d, limit: opts.Limit}
	switch format {
	case CSV:
		return openCSV(src, t, opts.Delimiter)
	case JSONL:
		return &jsonlSource{base: src, lines: newBuffer(t), columns: newColumnSet()}, nil
	default:
		return openArray(src, t)
	}
}

// base is what all sources share.
type base struct {
	name  string
	raw   *digested
	limit int64
	rows  int64 // read so far
}

// SourceDigest implements Digester.
func (b *base) SourceDigest() string { return b.raw.digest() }

func (b *base) done() bool { return b.limit > 0 && b.rows >= b.limit }

func refuseBinary(name string, head []byte) error {
	for magic, what := range map[string]string{
		"PK\x03\x04":       "a ZIP or a spreadsheet workbook; save it as CSV",
		"\x1f\x8b":         "compressed by gzip; unpack it, or pipe it in: gunzip -c FILE | sluice run MAP --in -",
		"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it, or pipe it in: zstdcat FILE | sluice run MAP --in -",
		"PAR1":             "a Parquet file; convert it to CSV or JSONL",
		"\xd0\xcf\x11\xe0": "an old spreadsheet workbook; save it as CSV",
		"%PDF-":            "a PDF; a CSV, JSONL or JSON file is needed",
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return &PosError{Name: name, Msg: "this is " + what}
		}
	}
	return nil
}

func formatOf(name, format string, t *text) (string, error) {
	switch f := strings.ToLower(format); f {
	case CSV, JSONL, JSON:
		return f, nil
	case "ndjson":
		return JSONL, nil
	case "tsv":
		return CSV, nil
	case "":
	default:
		return "", &PosError{Name: name, Msg: fmt.Sprintf("unknown format %q; known are csv, jsonl and json", format)}
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".txt":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONL, nil
	case ".json":
		return JSON, nil
	}
	switch head := bytes.TrimLeft(t.peek(), " \t\r\n"); {
	case bytes.HasPrefix(head, []byte("{")):
		return JSONL, nil
	case bytes.HasPrefix(head, []byte("[")):
		return JSON, nil
	}
	return CSV, nil
}

// encodingOf returns nil for UTF-8.
func encodingOf(name, label string, head []byte) (encoding.Encoding, string, error) {
	if label == "" {
		switch {
		case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
			return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-16", nil
		case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
			return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "UTF-16", nil
		}
		return nil, "", nil
	}
	switch strings.ToLower(strings.TrimSpace(label)) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return nil, "", nil
	case "utf-16", "utf16":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-16", nil
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-16", nil
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "UTF-16", nil
	}
	// IANA first: there latin1 is ISO 8859-1 itself, on the web it is windows-1252.
	if enc, err := ianaindex.IANA.Encoding(label); err == nil && enc != nil {
		return enc, label, nil
	}
	if enc, err := htmlindex.Get(label); err == nil && enc != encoding.Replacement {
		return enc, label, nil
	}
	return nil, "", &PosError{Name: name, Msg: fmt.Sprintf("unknown encoding %q; did you mean %q?", label, nearest(label, knownEncodings))}
}

// knownEncodings are the names that a misspelt one is compared with.
var knownEncodings = []string{"utf-8", "utf-16", "utf-16le", "utf-16be", "windows-1250", "windows-1251", "windows-1252",
	"windows-1253", "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874",
	"latin1", "iso-8859-1", "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-15", "macintosh", "koi8-r", "koi8-u",
	"ibm437", "ibm850", "ibm866", "shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "gbk", "gb18030", "big5"}

// nearest is the name with the smallest edit distance; the first of equals.
func nearest(word string, names []string) string {
	word = strings.ToLower(word)
	return slices.MinFunc(names, func(a, b string) int { return distance(word, a) - distance(word, b) })
}

// distance is the Levenshtein distance of two short ASCII words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
