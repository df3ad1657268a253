package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Extended is what Extend has found in the source.
type Extended = intake.Extension

// ErrOtherExtension: two extensions of one run were under way, and the other one was first.
var ErrOtherExtension = errors.New("was extended by somebody else at the same moment; extend it again")

// Extend adds the rows of a source that a run does not have to a run that has ended, or is paused, and lets it go on: rows
// that have ended are not computed again, new ones come behind them. A row with a key that the run has is a duplicate. Where
// the map's key is the position, the source must begin with the rows that the run has. The map, its tools and variables must be those of
// the run. A source without new rows changes nothing. Errors: sheet.ErrNoRun; ErrAtWork; ErrOtherRun; those of the source.
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
	sealed, told, err := intake.Extend(ctx, st, rec.ID, rec.Sealed, src.Source, identity(p.m), req.Seal)
	if err == nil {
		err = checkColumns(p.m, req.Documents.MapFile, sealed.Columns)
	}
	if err != nil {
		return nil, told, err
	}
	if told.Rows > 0 {
		if err := adopt(ctx, st, p, rec, sealed); err != nil {
			return nil, told, err
		}
	}
	job, err := LoadJob(ctx, st, rec.ID)
	return job, told, err
}

// extendable is the record of the run that is to be extended.
func extendable(ctx context.Context, st *store.Store, p *Prepared) (*sheet.Run, error) {
	rec, err := sheet.Load(ctx, st, p.req.ID)
	if err != nil {
		return nil, err
	}
	digest, err := meaning(p.m, p.tools)
	switch {
	case err != nil:
		return nil, err
	case rec.MapDigest != digest:
		return nil, fmt.Errorf("run %q %w: it was started with another map, tools or variables; a run is extended under the same", rec.ID, ErrOtherRun)
	case !rec.Status.Ended() && rec.Status != sheet.Paused || rec.StartedAt.IsZero():
		return nil, fmt.Errorf("run %s %w (%s): it can be extended when it has ended, or is paused", rec.ID, ErrAtWork, rec.Status)
	}
	return rec, nil
}

// adopt makes the extended input the run's. It is one write of the record; before it, the run is as it was.
func adopt(ctx context.Context, st *store.Store, p *Prepared, was *sheet.Run, sealed intake.Sealed) error {
	_, err := sheet.Ask(ctx, st, was.ID, func(c *sheet.Control) bool {
		halts := c.Halts()
		c.Cancel, c.Pause, c.Retry = nil, nil, nil
		return halts
	})
	if err != nil {
		return err
	}
	added := sealed.Parts[len(sealed.Parts)-1]
	var other error
	err = change(ctx, st, was.ID, func(r *sheet.Run) {
		switch {
		case r.Sealed.Digest == sealed.Digest:
			return // it was written, and reported as not written
		case r.Sealed.Digest != was.Sealed.Digest:
			other = fmt.Errorf("run %s %w", r.ID, ErrOtherExtension)
			return
		}
		reopen(r)
		anew(r)
		ends := shardEnds(r)
		for k, shards := 1, shardsFor(p.m, added.Rows, added.Pages); k <= shards; k++ {
			ends = append(ends, was.Sealed.Pages+added.Pages*k/shards)
		}
		r.Sealed, r.ShardEnds, r.Shards = sealed, ends, len(ends)
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
