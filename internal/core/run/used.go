package run

import (
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// spender is a gateway that knows what its own functions asked of the store. It lives as long as a slice.
type spender interface{ Used() table.Usage }

// used is what the store was asked since the job was loaded, or since its last slice.
func (j *Job) used(st *store.Store) table.Usage { return st.Used().Sub(j.since) }

// booked begins to count anew. Shards that share a store share the job as well: there it touches nothing.
func (j *Job) booked(st *store.Store) {
	if st.Meter != nil {
		j.since = st.Used()
	}
}

// used is what the slice has asked of the store so far, the gateway's functions included. Where several slices share a
// store, nobody can say (store.Store, Meter), and it is nothing.
func (s *slice) used() table.Usage {
	used := s.job.used(s.ports.Store)
	if g, ok := s.ports.Gateway.(spender); ok {
		used = used.Add(g.Used())
	}
	return used
}
