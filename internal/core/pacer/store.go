package pacer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/table"
)

// store is the cached copy of a scope's item. Only the serving goroutine uses what changes in it.
type store struct {
	tbl         table.Table
	owner, name string
	alive       func(owner string) bool // may be nil

	version int64 // 0: there is no item
	state   State
	cached  bool
	fresh   bool          // read or written in this round
	seq     int64         // of this owner's writes
	cost    time.Duration // of a write, smoothed
	read    time.Time     // when the item was read or written last
}

func scopeKey(name string) table.Key { return table.Key{Part: "pace/" + name, Sort: "state"} }

func load(ctx context.Context, tbl table.Table, name string) (int64, State, error) {
	item, err := tbl.Get(ctx, scopeKey(name))
	if errors.Is(err, table.ErrNotFound) {
		return 0, State{}, nil
	}
	if err != nil {
		return 0, State{}, err
	}
	s, err := decode(item.Data)
	return item.Version, s, err
}

func (st *store) reload(ctx context.Context) error {
	start := time.Now()
	v, s, err := load(ctx, st.tbl, st.name)
	if err != nil {
		st.cached = false
		return err
	}
	if st.cost == 0 { // the first guess of what a write takes
		st.cost = time.Since(start)
	}
	if v == 0 { // about to be written for the first time; now, because nothing has been granted yet
		enlist(ctx, st.tbl, st.name)
	}
	s.bury(st.owner, st.alive)
	st.version, st.state, st.cached, st.fresh, st.read = v, s, true, true, time.Now()
	return nil
}

// put stores next over the cached version. Each write bears its writer and a sequence number, so that a write whose
// end is unknown (or that an adapter repeated, and then found in its own way) is recognised when it is read back. If
// somebody has written over it meanwhile it counts as lost: its permits stay charged, and nobody uses them.
func (st *store) put(ctx context.Context, next State) (written bool, err error) {
	st.seq++
	next.By = fmt.Sprintf("%s#%d", st.owner, st.seq)
	data, err := encode(next)
	if err != nil {
		return false, err
	}
	cond := table.VersionIs(st.version)
	if st.version == 0 {
		cond = table.Absent()
	}
	item := table.Item{Key: scopeKey(st.name), Version: st.version + 1, Data: data, Expires: next.expiry()}
	start := time.Now()
	err = st.tbl.Put(ctx, item, cond)
	st.took(time.Since(start))
	if err == nil {
		st.version, st.state, st.cached, st.fresh, st.read = item.Version, next, true, true, time.Now()
		return true, nil
	}
	st.cached = false
	if errors.Is(err, table.ErrTooLarge) || errors.Is(err, table.ErrInvalid) {
		return false, err
	}
	if lerr := st.reload(ctx); lerr != nil {
		return false, errors.Join(err, lerr)
	}
	if st.state.By == next.By {
		return true, nil
	}
	if errors.Is(err, table.ErrConflict) {
		return false, nil
	}
	return false, &uncertainError{err}
}

// took smooths what a write takes: up at once, because a permit that comes late is void, and down slowly.
func (st *store) took(d time.Duration) {
	if d > st.cost {
		st.cost = d
		return
	}
	st.cost = (7*st.cost + d) / 8
}

// expected is what the next write is allowed to take.
func (st *store) expected() time.Duration { return min(st.cost*3/2, maxLead) }

// uncertainError is a write that may have happened, but was not found.
type uncertainError struct{ error }

func (e *uncertainError) Unwrap() error { return e.error }
