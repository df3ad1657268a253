// Package run is the engine: it plans a run, works its shards slice by slice, and finishes it. It owns the order in
// which things happen: what is durable before what, which row goes next, when a slice waits and when it parks. It
// refuses to know where it runs: no AWS, no files, no HTTP; everything outside comes in through Ports.
//
// A slice is worked by three parties. The pool (pool.go) decides which row goes next; rows (row.go, cell.go) compute
// cells and make calls (caller.go), which queue per provider (lane.go) for the gateway; pages (pages.go) keep what
// the rows have come to and make it durable.
package run

import (
	"log/slog"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/link"
	"sluice/internal/core/resolver"
	"sluice/internal/core/store"
)

// Ports is what a run needs from outside.
type Ports struct {
	Store   *store.Store
	Gateway call.Gateway
	// Resolvers are those that this program has.
	Resolvers resolver.Set
	// Owner names this slice: unique for every invocation.
	Owner string
	// Alive tells whether the slice of that name may still be at work; nil where only its lease can tell.
	Alive func(owner string) bool
	Log   *slog.Logger
}

// Defaults of the settings of a slice.
const (
	AutoConcurrency = 64               // rows at work at once, where the map says `auto`
	MaxWaiting      = 1000             // rows held or waiting for their turn (Q9)
	Lease           = 60 * time.Second // how long a silent owner keeps a shard
	CheckpointEvery = 10 * time.Second // at most this much is replayed after a crash; renews the lease (R11)
	DrainMargin     = 5 * time.Second  // kept free before the deadline, besides the longest call
	LookEvery       = time.Second      // what a cancellation takes to be heard, at most
)

// Settings bound one slice. The zero value is usable.
type Settings struct {
	Concurrency int         // rows at work at once; 0: the map's, or AutoConcurrency
	MaxWaiting  int         // 0: MaxWaiting
	Budget      hold.Budget // resident waiting; zero: the default of 5 s
	// Linger and Keep are for where every write and every batch of calls is billed: how long results wait for company
	// before they are committed, and calls before they are sent; and how long the journal is kept instead of being cut
	// (package sheet, JournalOptions).
	Linger   time.Duration
	Keep     time.Duration
	Memory   int64 // of the function that the slice is in, in MB, for the bill; 0: it is in none
	Lease    time.Duration
	Deadline time.Time       // of the invocation; zero: none
	Stop     <-chan struct{} // closed: drain, save, return
	Watch    *Watch          // progress, while the slice is at work
	Look     time.Duration   // how often it looks at what is asked of the run; 0: LookEvery
	Link     Linker          // where people answer events; nil: nowhere
	asked    bool            // somebody has said how many rows are at work
	Heap     Heap            // how full memory is; nil: what the runtime says of this process
}

// Heap tells how full the memory of the process is (M7).
type Heap interface {
	// Use is how many bytes are in use, of how many; limit zero: nobody has said. Cycle counts the collections: what is in
	// use is known anew with each of them.
	Use() (used, limit int64, cycle uint64)
	// Collect makes it known anew.
	Collect()
}

// Linker gives the address at which the event of a place can be answered until a time; zero: for good.
type Linker func(at link.Place, until time.Time) string

func (s Settings) withDefaults(job *Job) Settings {
	if s.Concurrency <= 0 {
		s.Concurrency = job.Run.Concurrency
	}
	if s.Concurrency <= 0 {
		s.Concurrency = job.Map.Concurrency
	}
	if s.asked = s.Concurrency > 0; !s.asked {
		s.Concurrency = AutoConcurrency
	}
	if s.MaxWaiting <= 0 {
		s.MaxWaiting = MaxWaiting
	}
	if s.Budget == (hold.Budget{}) {
		s.Budget = hold.DefaultBudget()
	}
	if s.Lease <= 0 {
		s.Lease = Lease
	}
	if s.Look <= 0 {
		s.Look = LookEvery
	}
	return s
}

// Outcome is how a slice ended.
type Outcome string

// The outcomes of a slice.
const (
	Done   Outcome = "done"   // every row of the shard has ended, and it is all saved
	More   Outcome = "more"   // there is work to do now
	Parked Outcome = "parked" // there is work to do at WakeAt
	// Awaiting is Parked, and rows wait for answers besides: there is work to do at WakeAt, if it is not zero, or when
	// something comes into the shard's inbox.
	Awaiting Outcome = "awaiting"
	Busy     Outcome = "busy" // another slice owns the shard; nothing was done
	// The run was asked to stop: what the shard has come to is saved, and no slice of it is to follow by itself.
	Paused    Outcome = "paused"
	Cancelled Outcome = "cancelled"
)

// Result is what a slice returns.
type Result struct {
	Outcome Outcome
	WakeAt  time.Time // Parked, Awaiting, Busy: when to come again
	Early   bool      // Parked: the slice came before the end of a park, which goes on
}
