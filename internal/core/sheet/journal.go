package sheet

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice/internal/core/store"
)

// Group sizes: a group is committed when it has groupBytes, or at once if nothing is being committed; when more
// than backlogBytes wait, Append makes its caller wait, so that calls cannot run ahead of what is saved.
const (
	groupBytes   = 64 << 10
	backlogBytes = 512 << 10
	// unitBytes of entries compress to about 1 KB, the unit in which DynamoDB bills writes (Developer Guide, "Read and
	// write capacity modes"). A lingering group that has less waits up to patience times as long.
	unitBytes = 3 << 10
	patience  = 10
)

// ErrJournal marks a failed write of results. It ends the slice: no call may be dispatched whose result could not
// be saved (T5).
var ErrJournal = errors.New("results could not be saved")

// Journal is a shard's log during one slice. What is appended while a group is being committed forms the next
// group. Safe for concurrent use; it is closed with Close.
type Journal struct {
	st     *store.Store
	run    string
	shard  int
	linger time.Duration
	stats  func() Stats
	told   func(ends Counts, err error)
	keep   time.Duration

	mu      sync.Mutex
	room    *sync.Cond
	open    *group
	backlog int
	next    Position
	total   int64    // bytes committed
	marks   []mark   // where the groups begin, for Since
	counts  Counts   // rows ended, as far as committed
	counted Position // counts speak of all groups before this
	failed  error
	trouble bool // a write has failed and is being repeated
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

// group is what is committed together.
type group struct {
	at   Position
	buf  []byte
	ends Counts        // rows that end in this group
	done chan struct{} // closed when the group is durable or has failed
	err  error
}

// Ticket stands for an appended entry: Wait returns when it is durable.
type Ticket struct{ g *group }

// At is the position of the entry's group.
func (t Ticket) At() Position { return t.g.at }

// Wait returns nil once the entry is durable. An error is ErrJournal, or that of ctx.
func (t Ticket) Wait(ctx context.Context) error {
	if t.g == nil {
		return nil
	}
	select {
	case <-t.g.done:
		return t.g.err
	default:
	}
	select {
	case <-t.g.done:
		return t.g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// JournalOptions say whose journal it is, and how it is kept.
type JournalOptions struct {
	Run    string
	Shard  int
	Epoch  int64  // of the slice
	Counts Counts // rows that ended before
	// Linger is how long a group waits for company: zero where a commit costs only its own time, some milliseconds
	// where every item written is billed.
	Linger time.Duration
	// Keep is how long groups are kept where deleting an item is billed like writing it; zero: until they are cut.
	Keep  time.Duration
	Stats func() Stats                 // the figures that are stored with each group
	Told  func(ends Counts, err error) // hears of each commit: the rows whose end it made durable, or why it failed
}

// OpenJournal starts the journal of a slice.
func OpenJournal(st *store.Store, o JournalOptions) *Journal {
	j := &Journal{
		st: st, run: o.Run, shard: o.Shard, linger: o.Linger, keep: o.Keep, stats: o.Stats, told: o.Told, counts: o.Counts,
		counted: Position{Epoch: o.Epoch}, next: Position{Epoch: o.Epoch},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	j.room = sync.NewCond(&j.mu)
	j.open = j.newGroup()
	go j.commitAll()
	return j
}

func (j *Journal) newGroup() *group {
	g := &group{at: j.next, done: make(chan struct{})}
	j.next.Seq++
	return g
}

// Append adds entries, all to the same group. It waits while too much is waiting to be saved.
func (j *Journal) Append(entries ...*Entry) (Ticket, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.backlog > backlogBytes && j.failed == nil {
		j.room.Wait()
	}
	if j.failed != nil {
		return Ticket{}, j.failed
	}
	g := j.open
	before := len(g.buf)
	for _, e := range entries {
		if len(g.buf) > 0 {
			g.buf = append(g.buf, ',')
		}
		g.buf = appendEntry(g.buf, e)
		g.ends = g.ends.Plus(e.ends())
	}
	j.backlog += len(g.buf) - before
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return Ticket{g}, nil
}

// Next is the position that the next entry may get: everything appended so far lies before it or in its group.
func (j *Journal) Next() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open.at
}

// Counted returns the rows whose end is durable, and the position up to which that speaks.
func (j *Journal) Counted() (Counts, Position) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts, j.counted
}

// mark says how many bytes had been committed before a group.
type mark struct {
	at    Position
	total int64
}

// Since is how many bytes of this slice's journal lie at or after a position.
func (j *Journal) Since(p Position) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.marks) > 0 && j.marks[0].at.Before(p) {
		j.marks = j.marks[1:]
	}
	if len(j.marks) == 0 {
		return 0
	}
	return j.total - j.marks[0].total
}

// Err is the failure that closed the journal, if any.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// Flush returns when everything appended before it is durable: groups are committed in order, so the end of an
// empty entry in the open group is the end of all before it.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	settled, failed := j.backlog == 0, j.failed
	j.mu.Unlock()
	if settled || failed != nil {
		return failed
	}
	t, err := j.Append()
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Close commits what is open and ends the journal.
func (j *Journal) Close() {
	close(j.stop)
	<-j.stopped
}
