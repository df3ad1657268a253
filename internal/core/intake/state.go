package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

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

// claim moves the input to staging and returns the version of that mark: only who still finds it may seal.
func claim(ctx context.Context, st *store.Store, run, fingerprint string) (int64, Sealed, error) {
	old, version, err := loadState(ctx, st, run)
	cond := table.VersionIs(version)
	switch {
	case errors.Is(err, table.ErrNotFound):
		// Versions of a new mark begin anywhere, so that a sealer that was overtaken by a whole life of the mark
		// (claimed, refused, deleted) does not take the next one for its own.
		cond, version = table.Absent(), rand.Int64N(1<<62)
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
		return refusal{fmt.Errorf("%w while it was read; run again when it is complete", ErrSourceChanged)}
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
