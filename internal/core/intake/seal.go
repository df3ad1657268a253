package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
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
	// KeyBudget bounds the key index in bytes; 0 is DefaultKeyBudget.
	KeyBudget int64
	// Progress is told the number of rows read so far, after each page.
	Progress func(rows int64)
}

// state is the item that says how far the input has come (M1): absent, staging, sealed.
type state struct {
	V           int     `json:"v"`
	State       string  `json:"state"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Sealed      *Sealed `json:"sealed,omitempty"`
}

const (
	staging = "staging"
	sealed  = "sealed"
	// finalWrite bounds the write that seals, which is made even if the caller has gone meanwhile.
	finalWrite = 10 * time.Second
)

func part(run string) string                    { return "run/" + run + "/in" }
func stateKey(run string) table.Key             { return table.Key{Part: part(run), Sort: "state"} }
func pageKey(run string, n int) table.Key       { return numbered(run, "p/%08d", n) }
func manifestKey(run string, n int) table.Key   { return numbered(run, "m/%06d", n) }
func duplicatesKey(run string, n int) table.Key { return numbered(run, "d/%08d", n) }

func numbered(run, format string, n int) table.Key {
	return table.Key{Part: part(run), Sort: fmt.Sprintf(format, n)}
}

// Seal reads the source to its end and makes it the run's input: pages of the rows that identity keeps, written
// before the input counts as sealed. If it fails or the process dies, calling it again starts over; nothing of a
// partial staging is ever readable as an input. Errors: ErrSealed with the Sealed that exists; ErrSourceChanged;
// ErrBudget; the source's own *PosError; table.ErrConflict if another process seals the same run.
func Seal(ctx context.Context, st *store.Store, run string, src Source, id Identity, opts SealOptions) (Sealed, error) {
	keys := &keyer{id: id}
	if err := keys.check(src); err != nil {
		return Sealed{}, err
	}
	version, existing, err := claim(ctx, st, run, opts.Fingerprint)
	if err != nil {
		return existing, err
	}
	s := newStager(ctx, st, run)
	out, err := s.stage(src, keys, opts)
	if err != nil {
		return Sealed{}, err
	}
	if err := s.dropLeftovers(); err != nil {
		return Sealed{}, err
	}
	if err := recheck(opts); err != nil {
		return Sealed{}, err
	}
	return out, seal(ctx, st, run, version, opts.Fingerprint, out)
}

// claim moves the input to staging and returns the version of that mark: only who still finds it may seal.
func claim(ctx context.Context, st *store.Store, run, fingerprint string) (int64, Sealed, error) {
	old, version, err := loadState(ctx, st, run)
	cond := table.VersionIs(version)
	switch {
	case errors.Is(err, table.ErrNotFound):
		cond = table.Absent()
	case err != nil:
		return 0, Sealed{}, err
	case old.State == sealed:
		return 0, *old.Sealed, fmt.Errorf("run %s: %w", run, ErrSealed)
	case old.Fingerprint != "" && fingerprint != "" && old.Fingerprint != fingerprint:
		return 0, Sealed{}, fmt.Errorf("run %s: %w since its sealing was interrupted; start a new run for the new source",
			run, ErrSourceChanged)
	case fingerprint == "":
		fingerprint = old.Fingerprint
	}
	return version + 1, Sealed{}, saveState(ctx, st, run, version+1, state{V: 1, State: staging, Fingerprint: fingerprint}, cond)
}

func recheck(opts SealOptions) error {
	if opts.Recheck == nil {
		return nil
	}
	now, err := opts.Recheck()
	if err != nil {
		return fmt.Errorf("cannot tell whether the source has changed: %w", err)
	}
	if now != opts.Fingerprint {
		return fmt.Errorf("%w while it was read; run again when it is complete", ErrSourceChanged)
	}
	return nil
}

// seal makes the input readable. If the store cannot say whether it was written, it is read again, never guessed.
func seal(ctx context.Context, st *store.Store, run string, version int64, fingerprint string, out Sealed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWrite)
	defer cancel()
	err := saveState(ctx, st, run, version+1, state{V: 1, State: sealed, Fingerprint: fingerprint, Sealed: &out}, table.VersionIs(version))
	if err == nil || errors.Is(err, table.ErrConflict) {
		return err
	}
	now, at, readErr := loadState(ctx, st, run)
	if readErr == nil && now.State == sealed && at == version+1 && now.Sealed.Digest == out.Digest {
		return nil
	}
	return err
}

// LoadSealed returns the run's sealed input, or ErrNotSealed.
func LoadSealed(ctx context.Context, st *store.Store, run string) (Sealed, error) {
	s, _, err := loadState(ctx, st, run)
	switch {
	case errors.Is(err, table.ErrNotFound), err == nil && s.State != sealed:
		return Sealed{}, fmt.Errorf("run %s: %w", run, ErrNotSealed)
	case err != nil:
		return Sealed{}, err
	}
	return *s.Sealed, nil
}

func loadState(ctx context.Context, st *store.Store, run string) (state, int64, error) {
	var s state
	framed, version, err := st.Load(ctx, stateKey(run))
	if err != nil {
		return s, 0, err
	}
	plain, err := frame.Open(framed)
	if err == nil {
		err = json.Unmarshal(plain, &s)
	}
	if err == nil && (s.V != 1 || s.State != staging && (s.State != sealed || s.Sealed == nil)) {
		err = fmt.Errorf("state %q of version %d is not known to this version of Sluice", s.State, s.V)
	}
	if err != nil {
		return s, 0, fmt.Errorf("run %s: the state of its input cannot be read: %w", run, err)
	}
	return s, version, nil
}

func saveState(ctx context.Context, st *store.Store, run string, version int64, s state, cond table.If) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := st.Save(ctx, stateKey(run), version, frame.SealFast(plain), cond); err != nil {
		return fmt.Errorf("run %s: the state of its input: %w", run, err)
	}
	return nil
}

// stage reads the source and writes its pages; it returns when all of them are durable.
func (s *stager) stage(src Source, keys *keyer, opts SealOptions) (Sealed, error) {
	index := &keyIndex{budget: opts.KeyBudget}
	if index.budget == 0 {
		index.budget = DefaultKeyBudget
	}
	out := Sealed{HasPosition: true, Typed: src.Typed()}
	d := s.draft(0)
	for {
		row, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.ctx.Err()
		}
		if err != nil {
			return out, s.abort(err)
		}
		at := out.Total
		out.Total++
		if dup, err := s.isDuplicate(keys, index, src.Columns(), row, at); err != nil {
			return out, s.abort(fmt.Errorf("row %d (%s): %w", at+1, rowPlace(src, row), err))
		} else if dup {
			out.Duplicates++
			continue
		}
		if s.row, err = appendRow(s.row[:0], src.Columns(), row.Values); err != nil {
			return out, s.abort(fmt.Errorf("row %d (%s): %w", at+1, rowPlace(src, row), err))
		}
		if len(d.ends) == MaxPageRows || len(d.ends) > 0 && len(d.rows)+len(s.row) > MaxPagePlain {
			d = s.turn(d, src.Columns(), out.Rows)
			if opts.Progress != nil {
				opts.Progress(at)
			}
		}
		d.rows = append(d.rows, s.row...)
		d.ends, d.index = append(d.ends, len(d.rows)), append(d.index, at)
		out.Rows++
	}
	out.Columns = append([]string{}, src.Columns()...)
	if len(d.ends) > 0 {
		s.turn(d, src.Columns(), out.Rows)
	}
	if opts.Progress != nil {
		opts.Progress(out.Total)
	}
	if g, ok := src.(Digester); ok {
		out.SourceDigest = g.SourceDigest()
	}
	return s.finish(out)
}

func rowPlace(src Source, row Row) string {
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
