package intake

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// list adds a page to the manifest.
func (s *stager) list(ref PageRef) error {
	addRef(s.sum, ref)
	s.refs = append(s.refs, ref)
	if len(s.refs) < refsPer {
		return nil
	}
	return s.saveRefs()
}

func (s *stager) saveRefs() error {
	if len(s.refs) == 0 {
		return nil
	}
	err := s.saveJSON(manifestKey(s.run, s.sets), s.refs)
	s.refs, s.sets = s.refs[:0], s.sets+1
	return err
}

func (s *stager) saveJSON(key table.Key, v any) error {
	if err := s.stillOurs(s.ctx); err != nil {
		return err
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.st.Save(s.ctx, key, 1, frame.Seal(plain), table.Always())
}

// addRef digests one entry of the manifest.
func addRef(sum hash.Hash, ref PageRef) {
	fmt.Fprintf(sum, "%d %d %s\n", ref.First, ref.Rows, ref.Digest)
}

// inputDigest completes the digest of all pages with the columns, so that two tables without rows differ too.
func inputDigest(sum hash.Hash, columns []string) string {
	names := make([]any, len(columns))
	for i, c := range columns {
		names[i] = c
	}
	text, _ := value.Append(nil, names) // columns that are not UTF-8 were refused with their pages
	_, _ = sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil))
}

// dropLeftovers deletes what an earlier staging wrote past the end of this one.
func (s *stager) dropLeftovers() error {
	if err := s.stillOurs(s.ctx); err != nil {
		return err
	}
	for prefix, end := range map[string]table.Key{
		"p/": pageKey(s.run, s.pages), "m/": manifestKey(s.run, s.sets), "d/": duplicatesKey(s.run, s.dupSets),
	} {
		q := table.Prefix(end.Part, prefix)
		q.From = end.Sort
		if err := drop(s.ctx, s.st, q); err != nil {
			return err
		}
	}
	return nil
}

func drop(ctx context.Context, st *store.Store, q table.Query) error {
	for it, err := range st.Table.Query(ctx, q) {
		if err != nil {
			return err
		}
		if err := st.Delete(ctx, it.Key, table.Always()); err != nil {
			return err
		}
	}
	return nil
}

// Discard deletes what an interrupted Seal has left of a run's input. Sealed input is ErrSealed, and stays.
func Discard(ctx context.Context, st *store.Store, run string) error {
	s, version, err := loadState(ctx, st, run)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return nil
	case err != nil:
		return err
	case s.State == sealed:
		return fmt.Errorf("run %s: %w", run, ErrSealed)
	}
	return discard(ctx, st, run, version)
}

// discard deletes the mark last, so that it can be repeated, after moving it on, so that nobody seals meanwhile.
func discard(ctx context.Context, st *store.Store, run string, version int64) error {
	err := saveState(ctx, st, run, version+1, state{V: 1, State: staging}, table.VersionIs(version))
	if err != nil {
		return err
	}
	for _, prefix := range []string{"p/", "m/", "d/"} {
		if err := drop(ctx, st, table.Prefix(part(run), prefix)); err != nil {
			return err
		}
	}
	return st.Delete(ctx, stateKey(run), table.VersionIs(version+1))
}
