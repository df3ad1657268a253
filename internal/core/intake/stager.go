package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"golang.org/x/sync/errgroup"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// What is in flight while staging. Together they bound its memory: a few pages of at most MaxPagePlain, however
// many rows there are (M4).
const (
	packers    = 2         // pages compressed at a time
	queued     = 2         // drafts waiting for them
	writers    = 4         // groups written at a time
	groupPages = 25        // pages of one write: a BatchWriteItem of DynamoDB
	groupBytes = 512 << 10 // or so many bytes, compressed
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
	group   *errgroup.Group
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
}

func newStager(ctx context.Context, st *store.Store, run string) *stager {
	g, inner := errgroup.WithContext(ctx)
	s := &stager{parent: ctx, ctx: inner, st: st, run: run, group: g, sum: sha256.New(),
		free: make(chan *draft, packers+queued+1), packing: make(chan job, queued), ordered: make(chan job, packers+queued)}
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
	if cap(d.rows) > 2*MaxPagePlain {
		d.rows = nil // one oversized row is no reason to keep its room
	}
	d.reset(first)
	return d
}

// turn hands a full draft on and returns the next one.
func (s *stager) turn(d *draft, columns []string, next int64) *draft {
	d.columns = columns[:len(columns):len(columns)]
	j := job{draft: d, out: make(chan []packed, 1)}
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

// pack digests and compresses drafts.
func (s *stager) pack() error {
	var plain []byte
	for {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case j, ok := <-s.packing:
			if !ok {
				return nil
			}
			var out []packed
			var err error
			if plain, out, err = packRows(plain, j.draft, 0, len(j.draft.ends), nil); err != nil {
				return err
			}
			j.out <- out
			if cap(plain) > 2*MaxPagePlain {
				plain = nil
			}
			select {
			case s.free <- j.draft:
			default:
			}
		}
	}
}

// packRows makes one page of rows i to j, or two and more if it would be over MaxPageSealed.
func packRows(plain []byte, d *draft, i, j int, out []packed) ([]byte, []packed, error) {
	plain, err := d.payload(plain[:0], i, j)
	if err != nil {
		return plain, nil, err
	}
	framed := frame.Seal(plain)
	if len(framed) > MaxPageSealed && j-i > 1 {
		half := i + (j-i)/2
		if plain, out, err = packRows(plain, d, i, half, out); err != nil {
			return plain, nil, err
		}
		return packRows(plain, d, half, j, out)
	}
	ref := PageRef{First: d.first + int64(i), Rows: j - i, Digest: pageDigest(plain)}
	return plain, append(out, packed{ref, framed}), nil
}

// sequence numbers the pages in order and writes them in groups.
func (s *stager) sequence() error {
	writes, ctx := errgroup.WithContext(s.ctx)
	writes.SetLimit(writers)
	var group []store.Entry
	size := 0
	flush := func() {
		if len(group) > 0 {
			entries := group
			writes.Go(func() error { return s.st.SaveMany(ctx, entries) })
			group, size = nil, 0
		}
	}
	for {
		pages, err := s.nextPacked(ctx)
		if err != nil {
			return firstOf(writes.Wait(), err)
		}
		if pages == nil {
			flush()
			return writes.Wait()
		}
		for _, p := range pages {
			group = append(group, store.Entry{Key: pageKey(s.run, s.pages), Version: 1, Value: p.framed})
			s.pages++
			if size += len(p.framed); len(group) == groupPages || size >= groupBytes {
				flush()
			}
			if err := s.list(p.ref); err != nil {
				return firstOf(writes.Wait(), err)
			}
		}
	}
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
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.st.Save(s.ctx, key, 1, frame.Seal(plain), table.Always())
}

// abort stops the pipeline, waits for it, and returns the failure that came first.
func (s *stager) abort(cause error) error {
	s.group.Go(func() error { return cause })
	return s.group.Wait()
}

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

// dropLeftovers deletes what an earlier staging wrote past the end of this one.
func (s *stager) dropLeftovers() error {
	for prefix, end := range map[string]table.Key{
		"p/": pageKey(s.run, s.pages), "m/": manifestKey(s.run, s.sets), "d/": duplicatesKey(s.run, s.dupSets),
	} {
		q := table.Prefix(end.Part, prefix)
		q.From = end.Sort
		for it, err := range s.st.Table.Query(s.ctx, q) {
			if err != nil {
				return err
			}
			if err := s.st.Delete(s.ctx, it.Key, table.Always()); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstOf prefers the failure of a write, which is why the other one stopped.
func firstOf(write, other error) error {
	if write != nil {
		return write
	}
	return other
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
