package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Duplicate is a row that was not kept, because an earlier one has its key.
type Duplicate struct {
	Row   int64 `json:"row"`   // 1-based number among the rows of all sources
	Line  int64 `json:"line"`  // Row.Line, in its own source
	First int64 `json:"first"` // 1-based number of the row that was kept
}

// isDuplicate tells whether an earlier row has the key of row, which is at the 0-based position at, and lists it.
func (s *stager) isDuplicate(keys *keyer, index *keyIndex, columns []string, row Row, at int64) (bool, error) {
	if keys.id.Key == nil && len(keys.id.Columns) == 0 {
		return false, nil
	}
	digest, err := keys.digest(columns, row.Values, at)
	if err != nil {
		return false, err
	}
	first, dup, err := index.add(digest, at)
	if err != nil || !dup {
		return false, err
	}
	s.dups = append(s.dups, Duplicate{Row: at + 1, Line: row.Line, First: first + 1})
	return true, nil
}

// fullDuplicates saves the list when it fills an item.
func (s *stager) fullDuplicates() error {
	if len(s.dups) < dupsPer {
		return nil
	}
	return s.saveDuplicates()
}

func (s *stager) saveDuplicates() error {
	if len(s.dups) == 0 {
		return nil
	}
	flat := make([][3]int64, len(s.dups))
	for i, d := range s.dups {
		flat[i] = [3]int64{d.Row, d.Line, d.First}
	}
	err := s.saveJSON(duplicatesKey(s.run, s.dupSets), flat)
	s.dups, s.dupSets = s.dups[:0], s.dupSets+1
	return err
}

// Duplicates yields the duplicates of a sealed input, of all its parts, in the order in which they came. Numbers of rows count
// on from part to part. It stops at an error.
func Duplicates(ctx context.Context, st *store.Store, run string, in Sealed) iter.Seq2[Duplicate, error] {
	return func(yield func(Duplicate, error) bool) {
		for _, p := range in.AllParts() {
			for it, err := range st.Table.Query(ctx, table.Prefix(part(under(run, p.Name)), "d/")) {
				var flat [][3]int64
				if err == nil {
					flat, err = openDuplicates(ctx, st, it)
				}
				if err != nil {
					yield(Duplicate{}, err)
					return
				}
				for _, d := range flat {
					if !yield(Duplicate{Row: d[0], Line: d[1], First: d[2]}, nil) {
						return
					}
				}
			}
		}
	}
}

func openDuplicates(ctx context.Context, st *store.Store, it table.Item) ([][3]int64, error) {
	framed, err := st.Open(ctx, it)
	if err != nil {
		return nil, err
	}
	plain, err := frame.Open(framed)
	if err != nil {
		return nil, fmt.Errorf("duplicates in %s: %w", it.Key, err)
	}
	var flat [][3]int64
	if err := json.Unmarshal(plain, &flat); err != nil {
		return nil, fmt.Errorf("duplicates in %s: %w", it.Key, err)
	}
	return flat, nil
}
