package call

import (
	"container/list"
	"encoding/json"
	"sync"
)

// Memo remembers results of idempotent calls of this run, newest first, within a budget of bytes: identical calls
// of later rows take them. Keys are digests, or what a column kept of a call. Safe for concurrent use.
type Memo struct {
	mu     sync.Mutex
	budget int
	used   int
	byKey  map[string]*list.Element
	recent *list.List
}

type remembered struct {
	key   string
	value json.RawMessage
}

// entryOverhead is what an entry costs besides its bytes: map and list bookkeeping.
const entryOverhead = 200

// NewMemo has room for budget bytes.
func NewMemo(budget int) *Memo {
	return &Memo{budget: budget, byKey: map[string]*list.Element{}, recent: list.New()}
}

// Get returns the remembered value.
func (m *Memo) Get(key string) (json.RawMessage, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[key]
	if !ok {
		return nil, false
	}
	m.recent.MoveToFront(e)
	return e.Value.(*remembered).value, true
}

// Put remembers a value and forgets the oldest ones that no longer fit.
func (m *Memo) Put(key string, v json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byKey[key]; ok || len(v)+entryOverhead > m.budget {
		return
	}
	m.byKey[key] = m.recent.PushFront(&remembered{key, v})
	m.used += len(key) + len(v) + entryOverhead
	for m.used > m.budget {
		oldest := m.recent.Back()
		r := m.recent.Remove(oldest).(*remembered)
		delete(m.byKey, r.key)
		m.used -= len(r.key) + len(r.value) + entryOverhead
	}
}
