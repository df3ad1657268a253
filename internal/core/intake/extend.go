package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// A sealed input is never written again. It is extended by a part of its own: further pages, with a manifest and a list of
// duplicates of their own, that count on where the parts before them end.

// Part is what a sealed input was extended by, or what it was before that.
type Part struct {
	Name         string `json:"name,omitempty"` // empty: the first
	Columns      int    `json:"columns"`        // so many of the input's columns were known
	Total        int64  `json:"total"`
	Duplicates   int64  `json:"duplicates"`
	Rows         int64  `json:"rows"`
	Pages        int    `json:"pages"`
	Digest       string `json:"digest"`
	SourceDigest string `json:"sourceDigest"`
}

// AllParts are the parts of the input, in order; an input that was never extended is one.
func (s *Sealed) AllParts() []Part {
	if len(s.Parts) > 0 {
		return s.Parts
	}
	return []Part{s.part("")}
}

func (s *Sealed) part(name string) Part {
	return Part{Name: name, Columns: len(s.Columns), Total: s.Total, Duplicates: s.Duplicates, Rows: s.Rows, Pages: s.Pages,
		Digest: s.Digest, SourceDigest: s.SourceDigest}
}

// alone is the part as an input of its own.
func (s *Sealed) alone(p Part) Sealed {
	return Sealed{Columns: s.Columns[:p.Columns], Total: p.Total, Duplicates: p.Duplicates, Rows: p.Rows, Pages: p.Pages,
		Digest: p.Digest, SourceDigest: p.SourceDigest}
}

// plus is the input with one more part.
func (s *Sealed) plus(more Sealed, name string) Sealed {
	out := *s
	out.Columns, out.Parts = more.Columns, append(slices.Clone(s.AllParts()), more.part(name))
	out.Total, out.Duplicates, out.Rows, out.Pages = s.Total+more.Total, s.Duplicates+more.Duplicates, s.Rows+more.Rows, s.Pages+more.Pages
	sum := sha256.New()
	for _, p := range out.Parts {
		_, _ = sum.Write([]byte(p.Digest + "\n"))
	}
	out.Digest = hex.EncodeToString(sum.Sum(nil))
	return out
}

// under is where a part lies: as the input of a run of another name.
func under(run, part string) string {
	if part == "" {
		return run
	}
	return run + "/" + part
}

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

func partName(in Sealed, name string) string {
	behind := "x" + strconv.Itoa(len(in.AllParts()))
	if name == "" {
		return behind
	}
	return behind + "-" + name
}

// leftPart is what an extension has left that was cut off. One with a name goes on with it; without, it is deleted.
func leftPart(ctx context.Context, st *store.Store, run string, opts SealOptions) (part Sealed, done bool, err error) {
	if opts.Name == "" {
		return part, false, forgetPart(ctx, st, run)
	}
	was, _, err := loadState(ctx, st, run)
	if errors.Is(err, table.ErrNotFound) {
		return part, false, nil
	}
	if err == nil && was.State == sealed {
		return *was.Sealed, true, nil
	}
	return part, false, err
}

// Forget deletes what an extension of that name has left that will never be the input's.
func Forget(ctx context.Context, st *store.Store, run string, in Sealed, name string) error {
	return forgetPart(ctx, st, under(run, partName(in, name)))
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

// forgetPart deletes a part that belongs to no input.
func forgetPart(ctx context.Context, st *store.Store, run string) error {
	_, version, err := loadState(ctx, st, run)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return discard(ctx, st, run, version)
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
