package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Extended is what Extend has found in the source.
type Extended = intake.Extension

// ErrOtherExtension: two extensions of one run were under way, and the other one was first.
var ErrOtherExtension = errors.New("was extended by somebody else at the same moment; extend it again")

// Extend adds the rows of a source that a run does not have to a run that has ended, or is paused, and lets it go on: rows
// that have ended are not computed again, new ones come behind them. A row with a key that the run has is a duplicate. Where
// the map's key is the position, the source must begin with the rows that the run has. The map, its tools and variables must be those of
// the run. A source without new rows changes nothing. Errors: sheet.ErrNoRun; ErrAtWork; ErrNoInput; ErrOtherRun; those of the
// source.
func Extend(ctx context.Context, st *store.Store, req Request) (*Job, Extended, error) {
	p, err := Prepare(req)
	if err != nil {
		return nil, Extended{}, err
	}
	rec, err := extendable(ctx, st, p)
	if err != nil {
		return nil, Extended{}, err
	}
	src, err := openSource(req)
	if err != nil {
		return nil, Extended{}, err
	}
	defer src.Close()
	p.m.Vars = rec.Vars
	sealed, told, err := extendedBy(ctx, st, rec, p.m, src.Source, req.Seal)
	if err != nil {
		return nil, told, err
	}
	if told.Rows > 0 {
		if err := uncancel(ctx, st, rec.ID); err != nil {
			return nil, told, err
		}
		if err := adopt(ctx, st, p.m, rec, sealed, adoption{}); err != nil {
			return nil, told, err
		}
	}
	job, err := LoadJob(ctx, st, rec.ID)
	return job, told, err
}

// extendedBy seals what the source has and the run has not.
func extendedBy(ctx context.Context, st *store.Store, r *sheet.Run, m *mapspec.Map, src intake.Source, opts intake.SealOptions) (intake.Sealed, Extended, error) {
	sealed, told, err := intake.Extend(ctx, st, r.ID, r.Sealed, src, identity(m), opts)
	if err == nil {
		if err = checkColumns(m, r.MapFile, sealed.Columns); err != nil {
			err = &RefusedError{err}
		}
	}
	return sealed, told, err
}

// extendable is the record of the run that is to be extended.
func extendable(ctx context.Context, st *store.Store, p *Prepared) (*sheet.Run, error) {
	rec, err := sheet.Load(ctx, st, p.req.ID)
	if err != nil {
		return nil, err
	}
	if err := p.Continues(rec); err != nil {
		return nil, err
	}
	asked, err := sheet.LoadControl(ctx, st, rec.ID)
	if err != nil {
		return nil, err
	}
	return rec, atRest(rec, asked, canExtend)
}

const canExtend = "it can be extended"

// Continues refuses a run that is of another map, other tools or other variables: ErrOtherRun.
func (p *Prepared) Continues(r *sheet.Run) error {
	digest, err := meaning(p.m, p.tools)
	if err == nil && r.MapDigest != digest {
		err = fmt.Errorf("run %q %w: it was started with another map, tools or variables; a run is extended under the same", r.ID, ErrOtherRun)
	}
	return err
}

// ErrNoInput: the run ended before its input was sealed.
var ErrNoInput = errors.New("has no rows yet")

// atRest refuses a run to which something can be done only when it has ended, or is paused.
func atRest(r *sheet.Run, asked *sheet.Control, can string) error {
	halted := r.Status.Ended() || r.Status == sheet.Paused
	switch {
	case asked.Extends(r):
		return fmt.Errorf("run %s %w: it is being extended; %s when that is done", r.ID, ErrAtWork, can)
	case halted && r.StartedAt.IsZero():
		return fmt.Errorf("run %s %w (%s); %s when it was resumed, and has read its input", r.ID, ErrNoInput, r.Status, can)
	case !halted:
		return fmt.Errorf("run %s %w (%s): %s when it has ended, or is paused", r.ID, ErrAtWork, r.Status, can)
	}
	return nil
}

// uncancel withdraws a cancellation that has been carried out.
func uncancel(ctx context.Context, st *store.Store, id string) error {
	_, err := sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		was := c.Cancel != nil
		c.Cancel = nil
		return was
	})
	return err
}

// unpause withdraws what keeps a run from going on that is about to be extended. A cancellation stands: it came since the extension
// was asked for. So does what was asked after somebody else has decided the extension.
func unpause(ctx context.Context, st *store.Store, id string, number int) error {
	var failed error
	_, err := sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		if number > 0 {
			r, err := sheet.LoadRecord(ctx, st, id)
			if failed = err; err != nil || !c.Extends(r) || c.Extend.Number != number {
				return false
			}
		}
		halts := c.Pause != nil
		c.Pause, c.Retry = nil, nil
		return halts
	})
	return errors.Join(failed, err)
}

// adoption is what the record says besides of an extension that was asked for.
type adoption struct {
	told   sheet.Extension // its number is 0 if nobody has asked: who extends the run works on it
	used   table.Usage
	planMs int64
}

// adopt makes the extended input the run's. It is one write of the record; before it, the run is as it was.
func adopt(ctx context.Context, st *store.Store, m *mapspec.Map, was *sheet.Run, sealed intake.Sealed, a adoption) error {
	if err := unpause(ctx, st, was.ID, a.told.Number); err != nil {
		return err
	}
	added := sealed.Parts[len(sealed.Parts)-1]
	var other error
	err := change(ctx, st, was.ID, func(r *sheet.Run) {
		other = nil
		switch {
		case a.told.Number > 0 && r.Extension != nil && r.Extension.Number >= a.told.Number:
			return // it was decided meanwhile, perhaps by this very write, reported as not written
		case r.Sealed.Digest == sealed.Digest:
			return // as above
		case r.Sealed.Digest != was.Sealed.Digest:
			other = fmt.Errorf("run %s %w", r.ID, ErrOtherExtension)
			return
		case !r.Status.Ended() && r.Status != sheet.Paused:
			other = fmt.Errorf("run %s %w (%s): it went on meanwhile", r.ID, ErrAtWork, r.Status)
			return
		}
		reopen(r)
		anew(r)
		ends := shardEnds(r)
		for k, shards := 1, shardsFor(m, added.Rows, added.Pages); k <= shards; k++ {
			ends = append(ends, was.Sealed.Pages+added.Pages*k/shards)
		}
		r.Sealed, r.ShardEnds, r.Shards = sealed, ends, len(ends)
		if a.told.Number > 0 {
			r.Extension, r.Usage, r.PlanMs = &a.told, r.Usage.Add(a.used), r.PlanMs+a.planMs
		}
	})
	return errors.Join(err, other)
}

// anew readies a record for another end: the steps of `finish` that were begun told of one that was not the last.
func anew(r *sheet.Run) {
	r.Finish = nil
	if !r.WholeAt.IsZero() {
		r.WholeAt, r.Endings = time.Time{}, r.Endings+1
	}
}

// shardEnds are where the shards' ranges of pages end.
func shardEnds(r *sheet.Run) []int {
	if len(r.ShardEnds) > 0 {
		return append([]int{}, r.ShardEnds...)
	}
	ends := make([]int, r.Shards)
	for shard := range ends {
		ends[shard] = r.Sealed.Pages * (shard + 1) / r.Shards
	}
	return ends
}
