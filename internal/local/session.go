package local

import (
	"strconv"
	"sync/atomic"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

var sessions atomic.Int64

// Session is the state for one of several runs that this process works on at once: what is asked of the store through it is
// counted for that run alone, and what it has leased of providers is its own. Closing it gives that back; the state stays
// open.
func (s *State) Session() *State {
	meter := table.Meter(s.table)
	return &State{
		Dir: s.Dir, Owner: s.Owner, bodies: s.bodies, table: s.table, meter: meter, locks: s.locks, lock: s.lock,
		Resolvers: s.Resolvers,
		Store:     &store.Store{Table: meter, Blobs: s.Store.Blobs}, whole: s, session: int(sessions.Add(1)),
	}
}

// pacing names who leases concurrency of providers.
func (s *State) pacing() string {
	if s.whole == nil {
		return s.Owner
	}
	return s.Owner + "/" + strconv.Itoa(s.session)
}
