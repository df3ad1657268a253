package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"sluice/internal/core/store"
	"sluice/internal/core/value"
)

// MaxParts bounds how many parts an input has: the record of its run tells of each.
const MaxParts = 500

// ErrParts: the input cannot be extended any more.
var ErrParts = fmt.Errorf("it has been extended %d times, which is the most; start another run for what follows", MaxParts-1)

// Extend seals the rows of a source that a sealed input does not have, behind those that it has, and returns the input with
// them. Nobody sees them before the caller has made it the run's. Rows with a known key are duplicates. Where the identity is
// the position, the source must begin with the rows that the input has; the others are new. A source without new rows leaves
// nothing behind: the input is returned as it was. Errors are those of Seal, and ErrParts.
func Extend(ctx context.Context, st *store.Store, run string, in Sealed, src Source, id Identity, opts SealOptions) (Sealed, Extension, error) {
	parts := len(in.AllParts())
	if parts >= MaxParts {
		return in, Extension{}, refusal{ErrParts}
	}
	name := partName(in, opts.Name)
	part, done, err := leftPart(ctx, st, under(run, name), opts)
	if err == nil && !done {
		part, err = sealPart(ctx, st, run, name, in, src, id, opts)
	}
	if err != nil {
		return in, Extension{}, err
	}
	told := Extension{Rows: part.Rows, Duplicates: part.Duplicates}
	if part.Rows == 0 {
		return in, told, forgetPart(ctx, st, under(run, name))
	}
	return in.plus(part, name), told, nil
}

// sealPart seals what the source has and the input has not.
func sealPart(ctx context.Context, st *store.Store, run, name string, in Sealed, src Source, id Identity, opts SealOptions) (Sealed, error) {
	more, err := aligned(in, src)
	if err != nil {
		return Sealed{}, refusal{err}
	}
	opts.known = &known{rows: in.Rows, total: in.Total}
	if id.Key == nil && len(id.Columns) == 0 {
		next, stop := iter.Pull2(sealedRows(ctx, st, run, in))
		defer stop()
		opts.known.next, opts.known.total = next, 0
	} else if opts.known.index, err = indexOf(ctx, st, run, in, id, opts); err != nil {
		return Sealed{}, err
	}
	part, err := Seal(ctx, st, under(run, name), more, id, opts)
	if opts.Name != "" && errors.Is(err, ErrSealed) { // somebody else has done the same meanwhile
		return part, nil
	}
	return part, err
}

// Extension is what a source has brought.
type Extension struct {
	Rows       int64 // new ones
	Duplicates int64 // that the input has already, or that came twice
}

// known is what an extension knows of the input that it extends.
type known struct {
	rows  int64
	total int64     // rows of the sources before; what the positions of the new ones count on from
	index *keyIndex // nil: the identity is the position
	next  func() ([]any, error, bool)
}

// passed reports whether the row at a position of the source is one that the input has, where that is decided by position.
// It refuses a row that should be, and is another. What fails may pass.
func (k *known) passed(row Row, at int64) (passed bool, refused, failed error) {
	if k.next == nil || at >= k.rows {
		return false, nil, nil
	}
	was, err, _ := k.next()
	if err != nil {
		return false, nil, err
	}
	same, err := sameValues(was, row.Values)
	if err != nil || same {
		return same, err, nil
	}
	return false, fmt.Errorf("it is not the row that the run has at this position; a table whose key is the position is extended by a source "+
		"that begins with the %d rows that it has: give the whole table, or the map a `key`, or start another run", k.rows), nil
}

// complete reports whether the source had all rows that the input has.
func (k *known) complete(total int64) error {
	if k.next == nil || total >= k.rows {
		return nil
	}
	return fmt.Errorf("the source has %d rows, the run has %d already; a table whose key is the position is extended by a source that begins "+
		"with the rows that it has", total, k.rows)
}

func sameValues(a, b []any) (bool, error) {
	for i := range max(len(a), len(b)) {
		var left, right any
		if i < len(a) {
			left = a[i]
		}
		if i < len(b) {
			right = b[i]
		}
		x, err := value.Append(nil, left)
		if err != nil {
			return false, err
		}
		y, err := value.Append(nil, right)
		if err != nil || !bytes.Equal(x, y) {
			return false, err
		}
	}
	return true, nil
}

// indexOf holds the keys of the rows that the input has, by their digests (M3).
func indexOf(ctx context.Context, st *store.Store, run string, in Sealed, id Identity, opts SealOptions) (*keyIndex, error) {
	index := newKeyIndex(opts)
	keys := &keyer{id: id}
	err := eachRow(ctx, st, run, in, func(values []any, at int64) error {
		digest, err := keys.digest(in.Columns, values, at)
		if err != nil {
			return fmt.Errorf("row %d of the sealed input: %w", at+1, err)
		}
		_, _, err = index.add(digest, at)
		return err
	})
	return index, err
}

// sealedRows yields the rows of the input.
func sealedRows(ctx context.Context, st *store.Store, run string, in Sealed) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		stopped := errors.New("stopped")
		err := eachRow(ctx, st, run, in, func(values []any, _ int64) error {
			if !yield(values, nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(nil, err)
		}
	}
}

func eachRow(ctx context.Context, st *store.Store, run string, in Sealed, do func(values []any, at int64) error) error {
	refs, err := Manifest(ctx, st, run, in)
	if err != nil {
		return err
	}
	for n, ref := range refs {
		page, err := ReadPage(ctx, st, run, ref, n)
		if err != nil {
			return err
		}
		for i, values := range page.Values {
			if err := do(values, page.Index[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
