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
	Keep  time.Time       `json:"keep,omitzero"`  // of a result: how long it serves
	Was   *receipt        `json:"was,omitempty"`  // of a claim: the earlier result that is to be replaced
}

// result is the result that the receipt holds, also one that a claim is about to replace; nil if there is none.
func (r *receipt) result(now time.Time) *receipt {
	switch {
	case r == nil:
		return nil
	case r.Claim == nil:
		return r
	case r.Was != nil && now.Before(r.Was.Keep):
		return r.Was
	}
	return nil
}

// serves reports whether the result answers a run that wants none from before a moment, but for its own (R9).
func (r *receipt) serves(run string, since time.Time) bool {
	return r != nil && (r.Run == run || !r.At.Before(since))
}

func receiptKey(tool string, d Digest) table.Key {
	return table.Key{Part: "receipt/" + d.String(), Sort: tool}
}

// Lookup is what Look or Claim found.
type Lookup struct {
	Value json.RawMessage // the result of an earlier call, with Hit
	Hit   bool
	Run   string    // that paid for it
	Busy  time.Time // somebody else is making the call: ask again then
	found int64     // version of what was found
	claim int64     // version of our claim
	was   *receipt  // the earlier result
}

// busyWait is how long a call waits before it asks again whether another run's identical call has ended.
const busyWait = 300 * time.Millisecond

// Look finds a result that serves, or who is making the call; otherwise the call can be claimed. Where `since` is given,
// results from before it do not count unless this run has paid for them (R9).
func (r *Receipts) Look(ctx context.Context, tool string, d Digest, run string, since time.Time) (Lookup, error) {
	found, version, err := r.load(ctx, receiptKey(tool, d))
	if err != nil {
		return Lookup{}, err
	}
	now := time.Now()
	known := found.result(now)
	switch {
	case known.serves(run, since):
		return Lookup{Value: known.Value, Hit: true, Run: known.Run}, nil
	case found != nil && found.Claim != nil && !r.mayTake(found, now):
		return Lookup{Busy: earlier(now.Add(busyWait), found.Until)}, nil
	}
	return Lookup{found: version, was: known}, nil
}

// Claim claims the call until the given time, if all is as it was at the look (the zero Lookup: nothing was there).
// Otherwise it looks again, and returns what it finds: a hit, or that somebody else is making the call.
func (r *Receipts) Claim(ctx context.Context, tool string, d Digest, run string, until, since time.Time, l Lookup) (Lookup, error) {
	for {
		claim := Lookup{claim: l.found + 1, was: l.was}
		err := r.put(ctx, receiptKey(tool, d), claim, run, until, ifVersion(l.found))
		switch {
		case err == nil:
			return claim, nil
		case !errors.Is(err, table.ErrConflict):
			return Lookup{}, err
		}
		if l, err = r.Look(ctx, tool, d, run, since); err != nil || l.Hit || !l.Busy.IsZero() {
			return l, err
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

// put writes a claim. An earlier result stays in it until there is a new one, unless both together are too large.
func (r *Receipts) put(ctx context.Context, key table.Key, l Lookup, run string, until time.Time, cond table.If) error {
	claim := receipt{V: 1, Run: run, Claim: &r.Owner, Until: until.UTC(), Was: l.was}
	expires := until.Add(24 * time.Hour)
	if l.was != nil && l.was.Keep.After(expires) {
		expires = l.was.Keep
	}
	err := r.save(ctx, key, l.claim, claim, expires, cond)
	if errors.Is(err, table.ErrTooLarge) && claim.Was != nil {
		claim.Was = nil
		err = r.save(ctx, key, l.claim, claim, expires, cond)
	}
	return err
}

// Renew makes the claim last until the given time. On table.ErrConflict it has run out, and another has taken it.
func (r *Receipts) Renew(ctx context.Context, tool string, d Digest, l *Lookup, run string, until time.Time) error {
	next := Lookup{claim: l.claim + 1, was: l.was}
	err := r.put(ctx, receiptKey(tool, d), next, run, until, table.VersionIs(l.claim))
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

// Settle stores the result in place of the claim, for the given time. One that is too large is not kept: the claim is
// given up, and the result serves whoever has paid for it.
func (r *Receipts) Settle(ctx context.Context, tool string, d Digest, l Lookup, run string, v json.RawMessage, keep time.Duration) error {
	now := time.Now().UTC()
	result := receipt{V: 1, Run: run, At: now, Value: v, Keep: now.Add(keep)}
	err := r.save(ctx, receiptKey(tool, d), l.claim+1, result, result.Keep, table.VersionIs(l.claim))
	switch {
	case errors.Is(err, table.ErrConflict):
		return nil // the claim had run out and another took it: its result serves as well
	case errors.Is(err, table.ErrTooLarge):
		return r.Release(ctx, tool, d, l)
	}
	return err
}

// Release gives the claim up, so that the next one that asks makes the call. An earlier result is there again.
func (r *Receipts) Release(ctx context.Context, tool string, d Digest, l Lookup) error {
	key := receiptKey(tool, d)
	var err error
	if l.was != nil && time.Now().Before(l.was.Keep) {
		err = r.save(ctx, key, l.claim+1, *l.was, l.was.Keep, table.VersionIs(l.claim))
	} else {
		err = r.Store.Delete(ctx, key, table.VersionIs(l.claim))
	}
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
	for _, one := range []*receipt{&found, found.Was} {
		if one != nil && one.Claim == nil && one.Value == nil {
			one.Value = json.RawMessage("null")
		}
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
		return fmt.Errorf("receipt %s: %w", key, table.ErrTooLarge)
	}
	return r.Store.SaveEntry(ctx, store.Entry{Key: key, Version: version, Value: framed, Expires: expires}, cond)
}
