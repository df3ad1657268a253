package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// What is in flight while staging. Together they bound its memory: a few pages of at most MaxPagePlain, however
// many rows there are (M4).
const (
	packers    = 2         // pages compressed at a time
	queued     = 2         // drafts waiting for them
	writers    = 4         // groups written at a time
	groupPages = 25        // pages of one write: a BatchWriteItem of DynamoDB
	groupBytes = 512 << 10 // or so many bytes, compressed
	groupPlain = 8 << 20   // or so many before compression
	inFlight   = 32 << 20  // bytes before compression between the source and the store
	heaviest   = 16 << 20  // what one page counts at most, so that it always fits beside an unwritten group
	refsPer    = 2000      // entries of one manifest item: about 60 KB
	dupsPer    = 5000      // entries of one item of duplicates
)

// stager is the pipeline source -> drafts -> packed pages -> writes. Pages get their numbers where they are packed
// in order, because a draft that compresses badly becomes several pages.
type stager struct {
	parent  context.Context
	ctx     context.Context // of the group: done after the first failure
	st      *store.Store
	run     string
	version int64 // of our claim on the input
	group   *errgroup.Group
	weight  *semaphore.Weighted
	free    chan *draft
	packing chan job
	ordered chan job
	row     []byte
	dups    []Duplicate
	dupSets int

	// Of the sequencer; finish reads them once it has ended.
	pages int
	refs  []PageRef
	sets  int
	sum   hash.Hash
}

type job struct {
	draft *draft
	out   chan []packed
}

type packed struct {
	ref    PageRef
	framed []byte
	weight int64 // to give back once it is written
}

func newStager(ctx context.Context, st *store.Store, run string, version int64) *stager {
	g, inner := errgroup.WithContext(ctx)
	s := &stager{parent: ctx, ctx: inner, st: st, run: run, version: version, group: g, sum: sha256.New(),
		weight: semaphore.NewWeighted(inFlight),
		free:   make(chan *draft, packers+queued+1), packing: make(chan job, queued), ordered: make(chan job, packers+queued)}
	for range packers {
		g.Go(s.pack)
	}
	g.Go(s.sequence)
	return s
}

func (s *stager) draft(first int64) *draft {
	var d *draft
	select {
	case d = <-s.free:
	default:
		d = new(draft)
	}
	d.reset(first)
	return d
}

// turn hands a full draft on and returns the next one.
func (s *stager) turn(d *draft, columns []string, next int64) *draft {
	d.columns = columns[:len(columns):len(columns)]
	j := job{draft: d, out: make(chan []packed, 1)}
	if s.weight.Acquire(s.ctx, d.weight()) != nil {
		return s.draft(next) // the source's loop sees the same
	}
	select {
	case s.ordered <- j:
	case <-s.ctx.Done():
		return s.draft(next)
	}
	select {
	case s.packing <- j:
	case <-s.ctx.Done():
	}
	return s.draft(next)
}

// sequence numbers the pages in order and writes them in groups.
func (s *stager) sequence() error {
	writes, ctx := errgroup.WithContext(s.ctx)
	writes.SetLimit(writers)
	var g pageGroup
	for {
		pages, err := s.nextPacked(ctx)
		if err != nil {
			return firstOf(writes.Wait(), err)
		}
		for _, p := range pages {
			g.add(pageKey(s.run, s.pages), p)
			s.pages++
			if err := s.list(p.ref); err != nil {
				return firstOf(writes.Wait(), err)
			}
			if g.full() {
				full := g
				writes.Go(func() error { return s.write(ctx, full) })
				g = pageGroup{}
			}
		}
		if pages == nil {
			writes.Go(func() error { return s.write(ctx, g) })
			return writes.Wait()
		}
	}
}

// pageGroup is what one write takes.
type pageGroup struct {
	entries []store.Entry
	bytes   int
	weight  int64
}

func (g *pageGroup) add(key table.Key, p packed) {
	g.entries = append(g.entries, store.Entry{Key: key, Version: 1, Value: p.framed})
	g.bytes += len(p.framed)
	g.weight += p.weight
}

func (g *pageGroup) full() bool {
	return len(g.entries) == groupPages || g.bytes >= groupBytes || g.weight >= groupPlain
}

// write saves a group.
func (s *stager) write(ctx context.Context, g pageGroup) error {
	defer s.weight.Release(g.weight)
	if len(g.entries) == 0 {
		return nil
	}
	if err := s.stillOurs(ctx); err != nil {
		return err
	}
	return s.st.SaveMany(ctx, g.entries)
}

// stillOurs is asked before every change. A process that lost its claim can so change at most what it had begun to;
// if that is not what the other one wrote, the digests tell.
func (s *stager) stillOurs(ctx context.Context) error {
	_, version, err := loadState(ctx, s.st, s.run)
	switch {
	case err != nil && !errors.Is(err, table.ErrNotFound):
		return err
	case err != nil || version != s.version:
		return fmt.Errorf("run %s: its input is being sealed by another process: %w", s.run, table.ErrConflict)
	}
	return nil
}

// nextPacked waits for the next draft's pages, in order; nil is the end.
func (s *stager) nextPacked(ctx context.Context) ([]packed, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case j, ok := <-s.ordered:
		if !ok {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case pages := <-j.out:
			return pages, nil
		}
	}
}

// abort stops the pipeline and waits for it. It returns the failure that came first: cause, a refusal of the source,
// or what had stopped the pipeline already.
func (s *stager) abort(cause error) error { return s.stop(refusal{cause}) }

// stop is abort for a failure that is not the source's.
func (s *stager) stop(cause error) error {
	s.group.Go(func() error { return cause })
	return s.group.Wait()
}

// refusal marks an error of the source or of a row: staging the same source again would meet it again.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// finish waits until all pages are written, completes the manifest and fills in what is known only now.
func (s *stager) finish(out Sealed) (Sealed, error) {
	close(s.packing)
	close(s.ordered)
	if err := s.group.Wait(); err != nil {
		return out, err
	}
	s.ctx = s.parent // the group's is done with the group
	if err := s.saveRefs(); err != nil {
		return out, err
	}
	if err := s.saveDuplicates(); err != nil {
		return out, err
	}
	out.Pages = s.pages
	out.Digest = inputDigest(s.sum, out.Columns)
	return out, nil
}

// firstOf prefers the failure of a write, which is why the other one stopped.
func firstOf(write, other error) error {
	if write != nil {
		return write
	}
	return other
}
