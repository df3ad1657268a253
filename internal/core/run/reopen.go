package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// reopener makes failed rows open again.
type reopener struct {
	job   *Job
	ports Ports
	set   Settings
	how   RetryOptions
	rows  []int64 // by shard: rows that are to be reopened
	first []int   // by shard: the first page with such a row
	told  Retried
}

// look counts the rows, and writes nothing.
func (x *reopener) look(ctx context.Context) error {
	x.rows, x.first = make([]int64, x.job.Run.Shards), make([]int, x.job.Run.Shards)
	reader := x.job.Reader(x.ports)
	for n := range x.job.manifest {
		live, err := reader.shardOf(ctx, n)
		if err != nil {
			return err
		}
		state, err := reader.state(ctx, n, live)
		if err != nil {
			return err
		}
		for i := range state.Rows {
			if state.Rows[i].Status != sheet.RowFailed {
				continue
			}
			if x.again(&state.Rows[i]) == nil {
				x.told.Unknown++
				continue
			}
			if x.rows[reader.shard] == 0 {
				x.first[reader.shard] = n
			}
			x.rows[reader.shard]++
			x.told.Rows++
		}
	}
	return nil
}

// shard reopens the rows of a shard. It takes the shard as a slice does. The order: nothing of an older journal is needed any
// more; then, for one page after another, the journal says which rows are open again, and the page follows.
func (x *reopener) shard(ctx context.Context, shard int) error {
	s, err := x.take(ctx, shard)
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	s.journal = sheet.OpenJournal(x.ports.Store, sheet.JournalOptions{
		Run: x.job.Run.ID, Shard: shard, Epoch: s.cp.Epoch, Counts: s.cp.Counts, Keep: x.set.Keep,
		Stats: func() sheet.Stats { return s.past.stats }, Told: func(sheet.Counts, error) {},
	})
	err = s.pages(ctx)
	s.journal.Close()
	if err != nil {
		return err
	}
	s.cp.Owner, s.cp.LeaseUntil = "", time.Time{}
	return s.save(ctx)
}

// reopening is a shard whose rows are being reopened.
type reopening struct {
	*reopener
	number  int
	cp      *sheet.Checkpoint
	past    *past
	journal *sheet.Journal
}

// take makes this the shard's owner, and puts the cursor before the first of the rows: from then on, whoever works on the
// shard goes through all that may be reopened.
func (x *reopener) take(ctx context.Context, shard int) (*reopening, error) {
	id, st, now := x.job.Run.ID, x.ports.Store, time.Now()
	cp, err := sheet.LoadCheckpoint(ctx, st, id, shard)
	if err != nil {
		return nil, err
	}
	if x.ports.owned(cp, now) {
		return nil, ErrLost // not yet: a process that died while it did this may own it still
	}
	cp.Epoch++
	cp.Owner, cp.OwnedAt, cp.LeaseUntil = x.ports.Owner, now.UTC(), now.Add(x.set.Lease).UTC()
	cp.Reach = max(cp.Reach, cp.Cursor)
	cp.Cursor = min(cp.Cursor, x.job.firstRow(x.first[shard]))
	cp.Status, cp.WakeAt = sheet.ShardRunning, time.Time{}
	if err := cp.Save(ctx, st, id, shard); err != nil {
		return nil, lostIf(err)
	}
	past, err := x.job.replay(ctx, cp, shard, x.ports)
	return &reopening{reopener: x, number: shard, cp: cp, past: past}, err
}

func lostIf(err error) error {
	if errors.Is(err, table.ErrConflict) {
		return ErrLost
	}
	return err
}

// settle brings what the journal says into the pages, so that it is not read again.
func (s *reopening) settle(ctx context.Context) error {
	for n, page := range s.past.pages {
		if err := s.savePage(ctx, n, page.state); err != nil {
			return err
		}
	}
	s.cp.Pending = slices.DeleteFunc(s.cp.Pending, func(p sheet.Pending) bool { return s.past.ended(p.Row) })
	s.cp.Reach, s.cp.Closed = s.past.reach, nil
	s.cp.Counts, s.cp.Stats, s.cp.Counted = s.past.counts, s.past.stats, sheet.Position{Epoch: s.cp.Epoch}
	return s.save(ctx)
}

func (s *reopening) savePage(ctx context.Context, n int, page *sheet.Page) error {
	framed, err := page.Encode()
	if err != nil {
		return err
	}
	return sheet.SavePage(ctx, s.ports.Store, s.job.Run.ID, s.cp.Epoch, n, framed)
}

// save writes the checkpoint. All pages are saved: the journal before what is counted is not needed.
func (s *reopening) save(ctx context.Context) error {
	now := time.Now()
	s.cp.From, s.cp.FromAt = s.cp.Counted, now.UTC()
	if s.cp.Owner != "" {
		s.cp.LeaseUntil = now.Add(s.set.Lease).UTC()
	}
	if err := s.cp.Save(ctx, s.ports.Store, s.job.Run.ID, s.number); err != nil {
		return lostIf(err)
	}
	if s.set.Keep > 0 {
		return nil
	}
	return sheet.Cut(ctx, s.ports.Store, s.job.Run.ID, s.number, s.cp.From)
}

// pages goes through the pages of the shard.
func (s *reopening) pages(ctx context.Context) error {
	unsaved := 0
	for n := s.first[s.number]; n < s.cp.EndPage; n++ {
		some, err := s.page(ctx, n)
		if err != nil {
			return err
		}
		if some {
			unsaved++
		}
		if last := n+1 == s.cp.EndPage; unsaved == keptPages || last || time.Until(s.cp.LeaseUntil) < s.set.Lease/2 {
			s.cp.Counts, s.cp.Counted = s.journal.Counted()
			if err := s.save(ctx); err != nil {
				return err
			}
			unsaved = 0
		}
	}
	return nil
}

// reopenedAtOnce is how many rows one group of the journal reopens, so that it stays small.
const reopenedAtOnce = 100

func (s *reopening) page(ctx context.Context, n int) (bool, error) {
	page, err := sheet.LoadPage(ctx, s.ports.Store, s.job.Run.ID, n)
	if errors.Is(err, table.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var last sheet.Ticket
	var entries []*sheet.Entry
	for i := range page.Rows {
		if page.Rows[i].Status != sheet.RowFailed {
			continue
		}
		if a := s.again(&page.Rows[i]); a != nil {
			a.Epoch = s.cp.Epoch
			entries = append(entries, &sheet.Entry{Kind: sheet.Reopened, Row: page.First + int64(i), Again: a})
		}
	}
	if len(entries) == 0 {
		return false, nil
	}
	for chunk := range slices.Chunk(entries, reopenedAtOnce) {
		if last, err = s.journal.Append(chunk...); err != nil {
			return false, err
		}
		for _, e := range chunk {
			if err := page.Apply(e, len(s.job.Map.Columns)); err != nil {
				return false, err
			}
		}
	}
	if err := last.Wait(ctx); err != nil {
		return false, err
	}
	return true, s.savePage(ctx, n, page)
}
