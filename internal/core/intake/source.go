// Package intake turns a source (CSV, JSONL, a JSON array) into sealed pages of rows: it owns decoding, refusals
// with positions, row identity and the sealed input. It refuses to guess: what cannot be carried unchanged is an
// error that names row and column.
package intake

// Row is one record of a source.
type Row struct {
	Line   int64 // 1-based line (CSV, JSONL) on which the record starts; element number in a JSON array
	Values []any // aligned with Columns; nil where the record has none
}

// Source yields rows one at a time, in constant memory. After io.EOF, Columns is final: sources without a header
// may learn columns as they go.
type Source interface {
	Columns() []string
	Next() (Row, error) // io.EOF at the end; any other error is final and names its position
	Typed() bool        // values have types (JSON); otherwise all are text
}
