// Package intake turns a source (CSV, JSONL, a JSON array) into sealed pages of rows: it owns decoding, refusals
// with positions, row identity and the sealed input. It refuses to guess: what cannot be carried unchanged is an
// error that names row and column.
package intake

import (
	"context"
	"errors"
	"io"
)

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

// Drain reads what is left of a source, for what is wrong with it and for its columns.
func Drain(ctx context.Context, src Source) error {
	for ctx.Err() == nil {
		if _, err := src.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}
