package gateway

import (
	"sync"
	"sync/atomic"
)

// flying counts the calls of each scope that are in flight in this process. The zero value is ready to use.
type flying struct{ scopes sync.Map }

// depart counts a call, and returns how many there are with it. It lands when it has come to its end.
func (f *flying) depart(scope string) (inFlight int, landed func()) {
	n, ok := f.scopes.Load(scope)
	if !ok {
		n, _ = f.scopes.LoadOrStore(scope, new(atomic.Int64))
	}
	count := n.(*atomic.Int64)
	return int(count.Add(1)), func() { count.Add(-1) }
}
