package sheet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Position is a place in a shard's journal: group Seq of the slice with this Epoch.
type Position struct {
	Epoch int64 `json:"e"`
	Seq   int64 `json:"s"`
}

// Before orders positions.
func (p Position) Before(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.Seq < q.Seq
}

// ShardStatus is where a shard stands.
type ShardStatus string

// The statuses of a shard.
const (
	ShardRunning ShardStatus = "running"
	ShardParked  ShardStatus = "parked"
	ShardDone    ShardStatus = "done"
)

// Checkpoint is a shard's one small item: who owns it, and all that a fresh process needs to go on, together with
// the journal from From on and the pages. Its size does not depend on the number of rows of the run.
type Checkpoint struct {
	V          int         `json:"v"`
	Status     ShardStatus `json:"status"`
	Epoch      int64       `json:"epoch"` // counts the slices that have owned the shard
	Owner      string      `json:"owner,omitempty"`
	LeaseUntil time.Time   `json:"leaseUntil,omitzero"`
	OwnedAt    time.Time   `json:"ownedAt,omitzero"` // since when the owner has it, or the last one had
	FirstPage  int         `json:"firstPage"`
	EndPage    int         `json:"endPage"`         // exclusive
	Cursor     int64       `json:"cursor"`          // rows from here on are still to be gone through
	Reach      int64       `json:"reach,omitempty"` // no row from here on was ever admitted; past Cursor after a crash, until that has caught up
	Pending    PendingRows `json:"pending,omitempty"`
	Streaks    []Streak    `json:"streaks,omitempty"` // rate scopes that have given nothing but "wait"
	From       Position    `json:"from"`              // replay the journal from here
	FromAt     time.Time   `json:"fromAt,omitzero"`   // when From moved last
	Counted    Position    `json:"counted"`           // Counts and Stats speak of all groups before this
	Closed     []Position  `json:"closed,omitempty"`  // where the journals of earlier slices end: what is later is not read
	Counts     Counts      `json:"counts"`
	Stats      Stats       `json:"stats"`
	Usage      table.Usage `json:"usage,omitzero"` // of the store by the shard's slices, where they book it; without this item's last write
	WakeAt     time.Time   `json:"wakeAt,omitzero"`
	Waits      Waiting     `json:"waits,omitzero"`

	version int64
}

// Streak is a rate scope that has given nothing but "wait" since a moment (R5). The first success ends it.
type Streak struct {
	Scope string    `json:"s"`
	Since time.Time `json:"t"`
	Until time.Time `json:"u"` // the latest moment that it asked to wait for
}

// Waiting says how many rows are on the wait list, for those who look; what is on it decides.
type Waiting struct {
	Answers int64 `json:"answers,omitempty"` // for an event
	Asleep  int64 `json:"asleep,omitempty"`
	Settled bool  `json:"settled,omitempty"` // the numbers are exact: the slice that wrote them has ended in order
}

// Plus adds the rows of another shard.
func (w Waiting) Plus(o Waiting) Waiting {
	return Waiting{Answers: w.Answers + o.Answers, Asleep: w.Asleep + o.Asleep}
}

// Reads reports whether a group at this position counts. A slice that has lost the shard and does not know it yet may
// go on writing to its journal; what it writes after its heir has read the journal is as if it were not there.
func (cp *Checkpoint) Reads(at Position) bool {
	for _, end := range cp.Closed {
		if end.Epoch == at.Epoch {
			return at.Seq < end.Seq
		}
	}
	return true
}

// LookAgain is when another slice should look again for a shard that has an owner: after half the time that the owner has
// had it by then, but for a second at least, and when the lease ends at the latest. Who has only just begun may be a second
// delivery of the same invocation, which ends soon; who has worked for long may do so for as long again.
func (cp *Checkpoint) LookAgain(now time.Time) time.Time {
	at := now.Add(max(now.Sub(cp.OwnedAt)/2, time.Second))
	if cp.LeaseUntil.Before(at) {
		return cp.LeaseUntil
	}
	return at
}

// LoadCheckpoint reads a shard's checkpoint; table.ErrNotFound if the shard has none.
func LoadCheckpoint(ctx context.Context, st *store.Store, id string, shard int) (*Checkpoint, error) {
	b, version, err := st.Load(ctx, checkpointKey(id, shard))
	if err != nil {
		return nil, err
	}
	if b, err = frame.Open(b); err != nil {
		return nil, fmt.Errorf("checkpoint of shard %d: %w", shard, err)
	}
	cp := &Checkpoint{version: version}
	if err := json.Unmarshal(b, cp); err != nil {
		return nil, fmt.Errorf("checkpoint of shard %d: %w", shard, err)
	}
	return cp, nil
}

// Save writes the checkpoint if nobody else has since it was loaded (version zero: if there is none). On
// table.ErrConflict the shard is another's. After any other error it is unknown what is stored: the caller must
// load again before it believes anything.
func (cp *Checkpoint) Save(ctx context.Context, st *store.Store, id string, shard int) error {
	cp.V = 1
	b, err := json.Marshal(cp)
	if err != nil {
		return err
	}
	cond := table.VersionIs(cp.version)
	if cp.version == 0 {
		cond = table.Absent()
	}
	if err := st.Save(ctx, checkpointKey(id, shard), cp.version+1, frame.Seal(b), cond); err != nil {
		return err
	}
	cp.version++
	return nil
}
