package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Manifest returns the entries of all pages, checked against the digest of the sealed input. About 100 bytes of
// memory per page; shards use ManifestRange. What does not agree is a *PageError with Page -1.
func Manifest(ctx context.Context, st *store.Store, run string, in Sealed) ([]PageRef, error) {
	refs, err := ManifestRange(ctx, st, run, in, 0, in.Pages)
	if err != nil {
		return nil, err
	}
	sum, rows := sha256.New(), int64(0)
	for i, ref := range refs {
		if ref.First != rows || ref.Rows < 1 {
			return nil, &PageError{Page: i, Reason: fmt.Sprintf("begins at row %d in the manifest and should begin at %d", ref.First, rows)}
		}
		rows += int64(ref.Rows)
		addRef(sum, ref)
	}
	if rows != in.Rows {
		return nil, &PageError{Page: -1, Reason: fmt.Sprintf("lists %d rows and should list %d", rows, in.Rows)}
	}
	if got := inputDigest(sum, in.Columns); got != in.Digest {
		return nil, &PageError{Page: -1, Reason: fmt.Sprintf("differs from what was sealed: its digest is %s and should be %s", got, in.Digest)}
	}
	return refs, nil
}

// ManifestRange returns the entries of pages from (inclusive) to to (exclusive).
func ManifestRange(ctx context.Context, st *store.Store, run string, in Sealed, from, to int) ([]PageRef, error) {
	if from < 0 || to < from || to > in.Pages {
		return nil, fmt.Errorf("intake: pages %d to %d of an input with %d pages", from, to, in.Pages)
	}
	refs := make([]PageRef, 0, to-from)
	for n := from / refsPer; n*refsPer < to; n++ {
		set, err := loadRefs(ctx, st, manifestKey(run, n))
		if err != nil {
			return nil, err
		}
		if want := min(refsPer, in.Pages-n*refsPer); len(set) != want {
			return nil, &PageError{Page: -1, Reason: fmt.Sprintf("lists %d pages in part %d and should list %d", len(set), n, want)}
		}
		refs = append(refs, set[max(0, from-n*refsPer):min(len(set), to-n*refsPer)]...)
	}
	return refs, nil
}

func loadRefs(ctx context.Context, st *store.Store, key table.Key) ([]PageRef, error) {
	framed, _, err := st.Load(ctx, key)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return nil, &PageError{Page: -1, Reason: "is incomplete: " + key.Sort + " is missing"}
	case errors.Is(err, store.ErrDamaged):
		return nil, &PageError{Page: -1, Reason: "is damaged", Err: err}
	case err != nil:
		return nil, err
	}
	var refs []PageRef
	plain, err := frame.Open(framed)
	if err == nil {
		err = json.Unmarshal(plain, &refs)
	}
	if err != nil {
		return nil, &PageError{Page: -1, Reason: "is damaged", Err: err}
	}
	return refs, nil
}

// Duplicate is a row that was not kept, because an earlier one has its key.
type Duplicate struct {
	Row   int64 `json:"row"`   // 1-based number among the source's rows
	Line  int64 `json:"line"`  // Row.Line
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
	if len(s.dups) < dupsPer {
		return true, nil
	}
	return true, s.saveDuplicates()
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

// Duplicates yields the duplicates of a sealed input in the order of the source. It stops at an error.
func Duplicates(ctx context.Context, st *store.Store, run string) iter.Seq2[Duplicate, error] {
	return func(yield func(Duplicate, error) bool) {
		if _, err := LoadSealed(ctx, st, run); err != nil {
			yield(Duplicate{}, err)
			return
		}
		for it, err := range st.Table.Query(ctx, table.Prefix(part(run), "d/")) {
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
