package tabletest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sluice/internal/core/table"
)

var (
	// ErrInjected is what a Fault reports unless it has an error of its own.
	ErrInjected = errors.New("tabletest: injected fault")
	// ErrCrashed is what every operation reports after a crash.
	ErrCrashed = errors.New("tabletest: the store has crashed")
)

// Op names a method of the port.
type Op string

// The operations.
const (
	OpGet     Op = "Get"
	OpGetMany Op = "GetMany"
	OpQuery   Op = "Query"
	OpPut     Op = "Put"
	OpPutMany Op = "PutMany"
	OpDelete  Op = "Delete"
)

// IsWrite reports whether the operation writes.
func (o Op) IsWrite() bool { return o == OpPut || o == OpPutMany || o == OpDelete }

// Kind is what a fault does to an operation.
type Kind int

const (
	// NotDone reports an error and does nothing.
	NotDone Kind = iota
	// DoneButFailed does it and then reports an error: what was written is there, a query fails behind its last item.
	DoneButFailed
	// HalfDone does the first half of a PutMany, or ends a query behind its first item, and reports an error; any other
	// operation is not done.
	HalfDone
	// Slow does it, after the delay.
	Slow
)

// Fault describes operations that go wrong.
type Fault struct {
	Kind  Kind
	On    func(op Op, key table.Key) bool // what it strikes, by any of the keys; nil is every write
	Skip  int                             // matches that pass before the first that is struck
	Times int                             // how many are struck; 0 is all
	Delay time.Duration                   // waited first, also by the other kinds; ends with the context
	Err   error                           // what is reported; nil is ErrInjected
}

// Event is one operation as it arrived. The key of a query has the lower bound as its Sort.
type Event struct {
	Op   Op
	Keys []table.Key
	Cond table.If
	Err  error // the outcome, as the caller saw it
}

// Faulty is a table over another one that fails on demand. Without faults it changes nothing. It is safe for concurrent
// use.
type Faulty struct {
	inner table.Table

	mu      sync.Mutex
	faults  []*Fault
	crash   *Fault
	crashed bool
	trace   []Event
	counts  map[Op]int
	hook    func(Event)
}

var _ table.Table = (*Faulty)(nil)

// NewFaulty wraps a table.
func NewFaulty(inner table.Table) *Faulty { return &Faulty{inner: inner, counts: map[Op]int{}} }

// Inject adds a fault. The first of several that strike an operation decides.
func (f *Faulty) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
}

// CrashAt simulates the death of the process or its store: the n-th write from now (1 is the next) suffers kind and
// reports ErrCrashed, as does every operation after it, reads included.
func (f *Faulty) CrashAt(n int, kind Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crash = &Fault{Kind: kind, Skip: n - 1, Err: ErrCrashed}
}

// Crashed reports whether the crash has happened.
func (f *Faulty) Crashed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

// Heal removes all faults and ends a crash. What was stored stays.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.crash, f.crashed = nil, nil, false
}

// OnOp has hook called behind every operation, before its caller goes on. The hook may use the table.
func (f *Faulty) OnOp(hook func(Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

// Trace returns the operations that have ended, in the order they did.
func (f *Faulty) Trace() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

// Count returns how many operations of these kinds have arrived, or how many at all.
func (f *Faulty) Count(ops ...Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for op, count := range f.counts {
		if len(ops) == 0 || slices.Contains(ops, op) {
			n += count
		}
	}
	return n
}

// Writes returns how many writes have arrived. A PutMany is one.
func (f *Faulty) Writes() int { return f.Count(OpPut, OpPutMany, OpDelete) }

// strike counts an operation, decides its fault, and waits the fault's delay.
func (f *Faulty) strike(ctx context.Context, op Op, keys ...table.Key) (Kind, error) {
	fault := f.decide(op, keys)
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-ctx.Done(): // the inner table reports it
		}
	}
	return fault.Kind, fault.Err
}

func (f *Faulty) decide(op Op, keys []table.Key) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op]++
	if f.crashed {
		return Fault{Kind: NotDone, Err: ErrCrashed}
	}
	if f.crash != nil && op.IsWrite() {
		if f.crash.Skip--; f.crash.Skip < 0 {
			f.crashed = true
			return *f.crash
		}
	}
	for i, fault := range f.faults {
		if !fault.matches(op, keys) {
			continue
		}
		if fault.Skip--; fault.Skip >= 0 {
			continue
		}
		if fault.Times > 0 {
			if fault.Times--; fault.Times == 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
		}
		struck := *fault
		if struck.Err == nil && struck.Kind != Slow {
			struck.Err = ErrInjected
		}
		return struck
	}
	return Fault{Kind: Slow}
}

func (f *Fault) matches(op Op, keys []table.Key) bool {
	if f.On == nil {
		return op.IsWrite()
	}
	return slices.ContainsFunc(keys, func(key table.Key) bool { return f.On(op, key) })
}

// end records an operation's outcome.
func (f *Faulty) end(e Event) {
	f.mu.Lock()
	f.trace = append(f.trace, e)
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		hook(e)
	}
}
