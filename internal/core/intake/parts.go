package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
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
