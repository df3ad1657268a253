package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Receipts are the durable results of calls of tools that allow reuse across runs (`cache`). Before such a call is
// made it is claimed, so that of all runs that want it now only one pays.
type Receipts struct {
	Store *store.Store
	Owner Claimant
}

// Claimant says who claims: a newer slice of the same shard takes over at once what a dead one had claimed.
type Claimant struct {
	Shard string `json:"shard"` // run and shard
	Epoch int64  `json:"epoch"`
}

// receipt is the stored form: a claim until it has a result.
type receipt struct {
	V     int             `json:"v"`
	Run   string          `json:"run,omitempty"` // that paid for it
	At    time.Time       `json:"at,omitzero"`
	Value json.RawMessage `json:"value,omitempty"`
	Claim *Claimant       `json:"claim,omitempty"`
	Until time.Time       `json:"until,omitzero"` // of the claim
}

func receiptKey(tool string, d Digest) table.Key {
	return table.Key{Part: "receipt/" + d.String(), Sort: tool}
}

// Lookup is what Claim found.
type Lookup struct {
	Value json.RawMessage // the result of an earlier call, with Hit
	Hit   bool
	Run   string    // that paid for it
	Busy  time.Time // somebody else is making the call: ask again then
	claim int64     // version of our claim
}

// busyWait is how long a call waits before it asks again whether another run's identical call has ended.
const busyWait = 300 * time.Millisecond

// Claim finds a result that is young enough, or claims the call until the given time. With force, results of other
// runs do not count (R9: those of this run do).
func (r *Receipts) Claim(ctx context.Context, tool string, d Digest, run string, until time.Time, force bool) (Lookup, error) {
	key := receiptKey(tool, d)
	for {
		found, version, err := r.load(ctx, key)
		if err != nil {
			return Lookup{}, err
		}
		now := time.Now()
		switch {
		case found != nil && found.Claim == nil && !(force && found.Run != run):
			return Lookup{Value: found.Value, Hit: true, Run: found.Run}, nil
		case found != nil && found.Claim != nil && !r.mayTake(found, now):
			return Lookup{Busy: earlier(now.Add(busyWait), found.Until)}, nil
		}
		claim := receipt{V: 1, Run: run, Claim: &r.Owner, Until: until.UTC()}
		err = r.save(ctx, key, version+1, claim, until.Add(24*time.Hour), ifVersion(version))
		switch {
		case err == nil:
			return Lookup{claim: version + 1}, nil
		case !errors.Is(err, table.ErrConflict):
			return Lookup{}, err
		}
	}
}

func (r *Receipts) mayTake(found *receipt, now time.Time) bool {
	ours := found.Claim.Shard == r.Owner.Shard && found.Claim.Epoch <= r.Owner.Epoch
	return ours || !now.Before(found.Until)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func ifVersion(v int64) table.If {
	if v == 0 {
		return table.Absent()
	}
	return table.VersionIs(v)
}

// Renew makes the claim last until the given time. On table.ErrConflict it has run out, and another has taken it.
func (r *Receipts) Renew(ctx context.Context, tool string, d Digest, l *Lookup, run string, until time.Time) error {
	claim := receipt{V: 1, Run: run, Claim: &r.Owner, Until: until.UTC()}
	err := r.save(ctx, receiptKey(tool, d), l.claim+1, claim, until.Add(24*time.Hour), table.VersionIs(l.claim))
	if err == nil {
		l.claim++
		return nil
	}
	if errors.Is(err, table.ErrConflict) {
		return err
	}
	found, version, loadErr := r.load(ctx, receiptKey(tool, d)) // written or not: it is ours to settle at this version
	if loadErr == nil && found != nil && found.Claim != nil && *found.Claim == r.Owner {
		l.claim = version
		return nil
	}
	return err
}

// Settle stores the result in place of the claim, for the given time.
func (r *Receipts) Settle(ctx context.Context, tool string, d Digest, l Lookup, run string, v json.RawMessage, keep time.Duration) error {
	now := time.Now().UTC()
	err := r.save(ctx, receiptKey(tool, d), l.claim+1, receipt{V: 1, Run: run, At: now, Value: v}, now.Add(keep), table.VersionIs(l.claim))
	if errors.Is(err, table.ErrConflict) {
		return nil // the claim had run out and another took it: its result serves as well
	}
	return err
}

// Release gives the claim up, so that the next one that asks makes the call.
func (r *Receipts) Release(ctx context.Context, tool string, d Digest, l Lookup) error {
	err := r.Store.Delete(ctx, receiptKey(tool, d), table.VersionIs(l.claim))
	if errors.Is(err, table.ErrConflict) {
		return nil
	}
	return err
}

func (r *Receipts) load(ctx context.Context, key table.Key) (*receipt, int64, error) {
	b, version, err := r.Store.Load(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if b, err = frame.Open(b); err != nil {
		return nil, 0, fmt.Errorf("receipt %s: %w", key, err)
	}
	var found receipt
	if err := json.Unmarshal(b, &found); err != nil {
		return nil, 0, fmt.Errorf("receipt %s: %w", key, err)
	}
	if found.Claim == nil && found.Value == nil {
		found.Value = json.RawMessage("null")
	}
	return &found, version, nil
}

func (r *Receipts) save(ctx context.Context, key table.Key, version int64, v receipt, expires time.Time, cond table.If) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	framed := frame.SealFast(b)
	if len(framed) > table.MaxItem-1024 {
		return fmt.Errorf("receipt %s: %w: results over %d KB cannot be cached", key, table.ErrTooLarge, table.MaxItem>>10)
	}
	return r.Store.SaveEntry(ctx, store.Entry{Key: key, Version: version, Value: framed, Expires: expires}, cond)
}
