package intake

import (
	"fmt"
	"slices"
)

// alignedSource is a source whose columns stand as those of an input.
type alignedSource struct {
	Source
	columns []string // of the input, then what the source has besides
	at      []int    // of each column of the source: its place in columns
}

// aligned brings the columns of a source into the order of the input's. A source with a header must have the same ones.
func aligned(in Sealed, src Source) (*alignedSource, error) {
	if src.Typed() != in.Typed {
		kind := map[bool]string{true: "values with types (JSON)", false: "text (CSV)"}
		return nil, fmt.Errorf("the run's input has %s, the source has %s", kind[in.Typed], kind[src.Typed()])
	}
	a := &alignedSource{Source: src, columns: slices.Clone(in.Columns)}
	if src.Typed() {
		return a, nil
	}
	have := src.Columns()
	for _, c := range in.Columns {
		if !slices.Contains(have, c) {
			return nil, fmt.Errorf("the source has no column %q, which the run's input has; it has %s", c, quoteList(have))
		}
	}
	for _, c := range have {
		if !slices.Contains(in.Columns, c) {
			return nil, fmt.Errorf("the run's input has no column %q; it has %s", c, quoteList(in.Columns))
		}
	}
	return a, nil
}

// Columns implements Source.
func (a *alignedSource) Columns() []string { return a.columns }

// Next implements Source.
func (a *alignedSource) Next() (Row, error) {
	row, err := a.Source.Next()
	a.learn()
	if err != nil {
		return row, err
	}
	values := make([]any, 0, len(a.columns))
	for i, v := range row.Values {
		for len(values) <= a.at[i] {
			values = append(values, nil)
		}
		values[a.at[i]] = v
	}
	row.Values = values
	return row, nil
}

// learn places the columns that the source has met by now.
func (a *alignedSource) learn() {
	for _, name := range a.Source.Columns()[len(a.at):] {
		at := slices.Index(a.columns, name)
		if at < 0 {
			at = len(a.columns)
			a.columns = append(a.columns, name)
		}
		a.at = append(a.at, at)
	}
}

// SourceDigest implements Digester.
func (a *alignedSource) SourceDigest() string {
	if d, ok := a.Source.(Digester); ok {
		return d.SourceDigest()
	}
	return ""
}
