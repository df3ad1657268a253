package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// FinishStep is what became of a step of the map's `finish`.
type FinishStep struct {
	Call    string          `json:"call,omitempty"`    // the tool; or:
	Publish string          `json:"publish,omitempty"` // the name
	Public  bool            `json:"public,omitempty"`  // Publish: for everybody who knows the address
	Size    int             `json:"size,omitempty"`    // Publish: bytes
	Result  json.RawMessage `json:"result,omitempty"`  // Call: what was kept, where that is short
	Error   *Fault          `json:"error,omitempty"`   // why the step failed
}

// Whole reports whether every row has ended and the sheet was found whole: the table can be exported. It is true before
// the status says completed while steps of `finish` are under way.
func (r *Run) Whole() bool { return r.Status == Completed || !r.WholeAt.IsZero() }

// finishMark sets the hidden runs apart: no run that is started has an id with it.
const finishMark = "~finish"

// FinishID names the hidden run that makes the steps of `finish`: one for each time that the run comes to its end, which
// it does again after failed rows were tried again.
func (r *Run) FinishID() string { return r.finishID(r.Endings) }

func (r *Run) finishID(ending int) string {
	if ending == 0 {
		return r.ID + finishMark
	}
	return r.ID + finishMark + strconv.Itoa(ending+1)
}

// Warnings say what went wrong at the end of a run whose rows are all there.
func (r *Run) Warnings() []string {
	var list []string
	for i, s := range r.Finish {
		if s.Error != nil {
			list = append(list, fmt.Sprintf("finish step %d (%s): %v", i+1, s.what(), s.Error))
		}
	}
	return list
}

func (s *FinishStep) what() string {
	if s.Publish != "" {
		return "publish " + s.Publish
	}
	return s.Call
}

// Part names what a slice works on: a shard of the run, or the only one of its hidden run.
type Part struct {
	ID    string
	Shard int
}

// Parts are those on which there may be work to do: the shards, or once all of their rows have ended the steps of
// `finish`.
func (r *Run) Parts() []Part {
	if !r.WholeAt.IsZero() {
		return []Part{{r.FinishID(), 0}}
	}
	return r.shards()
}

func (r *Run) shards() []Part {
	parts := make([]Part, r.Shards)
	for shard := range parts {
		parts[shard] = Part{r.ID, shard}
	}
	return parts
}

// Refresh sums up how the run stands, by the checkpoints of its shards and the newest groups of their journals. What
// `finish` has come to adds to the stats, and to no count of rows.
func (r *Run) Refresh(ctx context.Context, st *store.Store) error {
	var sum Run
	for _, p := range r.shards() {
		if err := sum.add(ctx, st, p); err != nil {
			return err
		}
	}
	counts, endings := sum.Counts, r.Endings
	if !r.WholeAt.IsZero() {
		endings++
	}
	for ending := range endings {
		if err := sum.add(ctx, st, Part{r.finishID(ending), 0}); err != nil {
			return err
		}
	}
	r.Counts, r.Stats, r.SliceUsage = counts, sum.Stats, sum.SliceUsage
	return nil
}

// add sums up how a part stands.
func (r *Run) add(ctx context.Context, st *store.Store, p Part) error {
	cp, err := LoadCheckpoint(ctx, st, p.ID, p.Shard)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	last, ok, err := newest(ctx, st, p.ID, p.Shard, cp)
	if err != nil {
		return err
	}
	if ok {
		last.Stats.Slices = max(last.Stats.Slices, cp.Stats.Slices)
		cp.Counts, cp.Stats = last.Counts, last.Stats
	}
	r.Counts, r.Stats, r.SliceUsage = r.Counts.Plus(cp.Counts), r.Stats.Plus(cp.Stats), r.SliceUsage.Add(cp.Usage)
	return nil
}
