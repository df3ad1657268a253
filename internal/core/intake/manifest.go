package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Manifest returns the entries of all pages, checked against the digest of the sealed input. About 100 bytes of
// memory per page; shards use ManifestRange. What does not agree is a *PageError with Page -1.
func Manifest(ctx context.Context, st *store.Store, run string, in Sealed) ([]PageRef, error) {
	if len(in.Parts) == 0 {
		return manifestOf(ctx, st, run, in, 0)
	}
	var all []PageRef
	first := int64(0)
	for _, part := range in.Parts {
		refs, err := manifestOf(ctx, st, under(run, part.Name), in.alone(part), first)
		if err != nil {
			return nil, err
		}
		for n := range refs {
			if part.Name != "" {
				refs[n].Part, refs[n].Number = part.Name, n
			}
		}
		all, first = append(all, refs...), first+part.Rows
	}
	return all, nil
}

// manifestOf reads the entries of one part, the first row of which has this ordinal.
func manifestOf(ctx context.Context, st *store.Store, run string, in Sealed, first int64) ([]PageRef, error) {
	refs, err := ManifestRange(ctx, st, run, in, 0, in.Pages)
	if err != nil {
		return nil, err
	}
	sum, rows := sha256.New(), first
	for i, ref := range refs {
		if ref.First != rows || ref.Rows < 1 {
			return nil, &PageError{Page: i, Reason: fmt.Sprintf("begins at row %d in the manifest and should begin at %d", ref.First, rows)}
		}
		rows += int64(ref.Rows)
		addRef(sum, ref)
	}
	if rows -= first; rows != in.Rows {
		return nil, &PageError{Page: -1, Reason: fmt.Sprintf("lists %d rows and should list %d", rows, in.Rows)}
	}
	if got := inputDigest(sum, in.Columns); got != in.Digest {
		return nil, &PageError{Page: -1, Reason: fmt.Sprintf("differs from what was sealed: its digest is %s and should be %s", got, in.Digest)}
	}
	return refs, nil
}

// ManifestRange returns the entries of the pages in [from, to).
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
