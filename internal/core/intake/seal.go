package intake

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/value"
)

// Bounds of a page. It ends at whichever comes first.
const (
	MaxPageRows   = 1000
	MaxPagePlain  = 1 << 20   // bytes of rows as JSON
	MaxPageSealed = 200 << 10 // bytes compressed: half of what an item takes, a quarter of a page of DynamoDB's Query
)

// SealOptions of Seal; the zero SealOptions are usable.
type SealOptions struct {
	// Fingerprint tells whether two readings are of the same source: size and time of a file, a digest, the version
	// of an object. Staging that starts again with another one is ErrSourceChanged; empty is not compared.
	Fingerprint string
	// Recheck returns the fingerprint anew once all is read: a source that was written to meanwhile is refused.
	Recheck func() (string, error)
	// Name names an extension that may be done more than once, also at the same time: it comes to one part, which nobody else
	// writes or deletes. Its source is always the same. Empty: what an extension has left that was cut off is deleted first.
	Name string
	// KeyBudget bounds the key index in bytes; 0 is DefaultKeyBudget.
	KeyBudget int64
	// Progress is told the number of rows read so far, after each page.
	Progress func(rows int64)

	known *known // of an extension
}

// Seal reads the source to its end and makes it the run's input: pages of the rows that identity keeps, written
// before the input counts as sealed. If the process dies, calling it again starts over; nothing of a partial staging
// is ever readable as an input. If the source is refused, what was staged is deleted, so that a corrected source can be
// sealed under the same run. Errors: ErrSealed with the Sealed that exists; ErrSourceChanged; ErrBudget; the source's
// own *PosError (Refused tells); table.ErrConflict if another process seals the same run.
func Seal(ctx context.Context, st *store.Store, run string, src Source, id Identity, opts SealOptions) (Sealed, error) {
	keys := &keyer{id: id}
	if err := keys.check(src); err != nil {
		return Sealed{}, refusal{err}
	}
	version, existing, err := claim(ctx, st, run, opts.Fingerprint)
	if err != nil {
		return existing, err
	}
	out, err := stage(ctx, st, run, version, src, keys, opts)
	if r := (refusal{}); errors.As(err, &r) && ctx.Err() == nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWrite)
		defer cancel()
		_ = discard(cleanup, st, run, version) // the refusal is what counts; what remains is staging still
		return Sealed{}, r
	}
	if err != nil {
		return Sealed{}, err
	}
	return out, seal(ctx, st, run, version, opts.Fingerprint, out)
}

func stage(ctx context.Context, st *store.Store, run string, version int64, src Source, keys *keyer, opts SealOptions) (Sealed, error) {
	s := newStager(ctx, st, run, version)
	out, err := s.read(src, keys, opts)
	if err != nil {
		return out, err
	}
	if err := s.dropLeftovers(); err != nil {
		return out, err
	}
	return out, recheck(opts)
}

// read takes the source to its end and returns when all of its pages are durable.
func (s *stager) read(src Source, keys *keyer, opts SealOptions) (Sealed, error) {
	before := opts.known
	if before == nil {
		before = &known{index: newKeyIndex(opts)}
	}
	progress := opts.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	out := Sealed{HasPosition: true, Typed: src.Typed()}
	d := s.draft(before.rows)
	for s.ctx.Err() == nil {
		row, err := src.Next()
		if errors.Is(err, io.EOF) {
			if err := before.complete(out.Total); err != nil {
				return out, s.abort(err)
			}
			return s.end(src, d, progress, out, before)
		}
		if err != nil {
			return out, s.abort(err)
		}
		at := before.total + out.Total
		out.Total++
		what, err := s.judge(src, keys, before, row, at)
		switch {
		case err != nil:
			return out, s.stop(err)
		case what == passed:
			continue
		case what == duplicate:
			out.Duplicates++
			if err := s.fullDuplicates(); err != nil {
				return out, s.stop(err)
			}
			continue
		}
		if d.full(len(s.row)) {
			d = s.turn(d, src.Columns(), before.rows+out.Rows)
			progress(at)
		}
		d.add(s.row, at)
		out.Rows++
	}
	return out, s.group.Wait() // why the context is done
}

// fate is what becomes of a row of the source.
type fate int

const (
	kept      fate = iota
	duplicate      // an earlier row has its key
	passed         // it is one that the input has already
)

// judge decides about a row; one that is kept is in s.row, as JSON.
func (s *stager) judge(src Source, keys *keyer, before *known, row Row, at int64) (fate, error) {
	what := kept
	known, refused, failed := before.passed(row, at)
	switch {
	case failed != nil:
		return what, failed
	case refused == nil && known:
		return passed, nil
	case refused == nil:
		var dup bool
		if dup, refused = s.isDuplicate(keys, before.index, src.Columns(), row, at); dup {
			return duplicate, nil
		}
	}
	if refused == nil {
		s.row, refused = appendRow(s.row[:0], src.Columns(), row.Values)
	}
	if refused != nil {
		return what, refusal{fmt.Errorf("row %d (%s): %w", at+1, rowPlace(src, row), refused)}
	}
	return what, nil
}

func (s *stager) end(src Source, d *draft, progress func(int64), out Sealed, before *known) (Sealed, error) {
	out.Columns = append([]string{}, src.Columns()...)
	if len(d.ends) > 0 {
		s.turn(d, out.Columns, before.rows+out.Rows)
	}
	progress(out.Total)
	if before.next != nil {
		out.Total -= before.rows // they were counted when they came
	}
	if g, ok := src.(Digester); ok {
		out.SourceDigest = g.SourceDigest()
	}
	return s.finish(out)
}

func rowPlace(src Source, row Row) string {
	if a, ok := src.(*alignedSource); ok {
		src = a.Source
	}
	if _, array := src.(*arraySource); array {
		return fmt.Sprintf("element %d", row.Line)
	}
	return fmt.Sprintf("line %d", row.Line)
}

// appendRow appends the row's JSON and a comma. A row that no page could hold is refused before it is kept.
func appendRow(dst []byte, columns []string, values []any) ([]byte, error) {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = value.Append(dst, v); err != nil {
			if i < len(columns) {
				err = fmt.Errorf("column %q: %w", columns[i], err)
			}
			return dst, err
		}
	}
	dst = append(dst, "],"...)
	if most := frame.MaxPlain - pageOverhead(columns); len(dst) > most {
		return dst, fmt.Errorf("the row has %d bytes as JSON; at most %d are possible", len(dst), most)
	}
	return dst, nil
}

// pageOverhead bounds what a page of one row has besides the row.
func pageOverhead(columns []string) int {
	n := 256
	for _, c := range columns {
		n += 6*len(c) + 3 // each byte escaped
	}
	return n
}
