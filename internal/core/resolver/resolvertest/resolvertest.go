// Package resolvertest runs resolvers in tests: with tools that the test makes, in a time that does not pass, and from the
// beginning again at every point at which a process could die.
package resolvertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/resolver"
	"sluice/internal/core/value"
)

// Tool answers a call: with a result, which may be nil, with Hold, or with another error, which is final.
type Tool func(with map[string]any) (any, error)

// hold is a provider's "not now".
type hold struct{ wait time.Duration }

func (h *hold) Error() string { return "come again in " + h.wait.String() }

// Hold is the error of a tool whose provider says to come again after a while.
func Hold(wait time.Duration) error { return &hold{wait} }

// World is what a resolver meets in a test. Fill it before Run.
type World struct {
	Tools   map[string]Tool
	Answers map[string]Answer // to events, by key; where there is none the event expires
	Row     map[string]any
	Cells   map[string]any
	Index   int64
	Start   time.Time // of the resolver; zero: the beginning of 2026
}

// Answer is given to an event a while after it is asked for first.
type Answer struct {
	Value any
	After time.Duration
}

// Result is what a resolver has come to.
type Result struct {
	Value any
	Err   error         // a *resolver.Error
	Took  time.Duration // of the time that did not pass
	Runs  int           // how often it was begun
	Calls []string      // the calls that were answered otherwise than with Hold, notifications included, as `tool {"input":1}`
}

// Run runs the resolver to its end, with every wait on the way. It fails the test if the resolver waits for good.
func Run(t testing.TB, w World, f resolver.Func, with map[string]any) Result {
	t.Helper()
	h := newHost(&w)
	return h.toTheEnd(t, f, with)
}

// Everywhere is Run, and runs the resolver once more for every operation: with a process that dies right after the operation
// is recorded, so that the next one begins anew with what is recorded. Each of them must come to the same result, and
// must have made the same calls, each once. It returns the result.
func Everywhere(t testing.TB, w World, f resolver.Func, with map[string]any) Result {
	t.Helper()
	want := Run(t, w, f, with)
	for n := 1; ; n++ {
		h := newHost(&w)
		h.dieAfter = n
		got := h.toTheEnd(t, f, with)
		if h.dieAfter > 0 {
			return want // there are not so many
		}
		if diff := cmp.Diff(fmt.Sprint(want.Value, want.Err), fmt.Sprint(got.Value, got.Err)); diff != "" {
			t.Errorf("a process that dies after operation %d changes the result: %s", n, diff)
		}
		if diff := cmp.Diff(sorted(want.Calls), sorted(got.Calls)); diff != "" {
			t.Errorf("a process that dies after operation %d changes the calls: %s", n, diff)
		}
	}
}

// wait is why the test's row waits.
type wait struct {
	until time.Time // zero: never
	what  string
}

// host is the records of one row, in memory.
type host struct {
	*World
	mu       sync.Mutex
	now      time.Time
	records  map[int]resolver.Record
	ends     map[int]time.Time // of sleeps and events
	asked    map[int]time.Time // when an event was asked for
	calls    []string
	dieAfter int // records until the process dies; 0: it does not
}

// errDied ends a run of the resolver as a dead process does.
var errDied = fmt.Errorf("resolvertest: the process died")

func newHost(w *World) *host {
	start := w.Start
	if start.IsZero() {
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return &host{World: w, now: start, records: map[int]resolver.Record{}, ends: map[int]time.Time{}, asked: map[int]time.Time{}}
}

// mostRuns is how often a resolver is begun before it is called endless.
const mostRuns = 10_000

func (h *host) toTheEnd(t testing.TB, f resolver.Func, with map[string]any) Result {
	t.Helper()
	began, res := h.now, Result{}
	for {
		if res.Runs++; res.Runs > mostRuns {
			t.Fatal("the resolver never ends")
		}
		o := resolver.Execute(h, f, with)
		switch {
		case o.Err == errDied: //nolint:errorlint // it is never wrapped
			continue
		case o.Err != nil:
			t.Fatal(o.Err)
		case len(o.Waits) > 0:
			h.pass(t, o.Waits)
			continue
		case o.Fail != nil:
			if o.Stack != "" {
				t.Log(o.Stack)
			}
			res.Err = o.Fail
		default:
			v, err := value.Decode(o.Value)
			if err != nil {
				t.Fatal(err)
			}
			res.Value = v
		}
		res.Took, res.Calls = h.now.Sub(began), h.calls
		return res
	}
}

// pass lets the time pass until the first wait ends.
func (h *host) pass(t testing.TB, waits []*resolver.Suspension) {
	t.Helper()
	var first time.Time
	var what []string
	for _, s := range waits {
		w := s.Reason.(wait)
		what = append(what, w.what)
		if !w.until.IsZero() && (first.IsZero() || w.until.Before(first)) {
			first = w.until
		}
	}
	if first.IsZero() {
		t.Fatalf("the resolver waits for good: %s", strings.Join(what, ", "))
	}
	if first.After(h.now) {
		h.now = first
	}
}

// Context implements resolver.Host.
func (h *host) Context() context.Context { return context.Background() }

// Row implements resolver.Host.
func (h *host) Row() map[string]any { return h.World.Row }

// Cells implements resolver.Host.
func (h *host) Cells() map[string]any { return h.World.Cells }

// Index implements resolver.Host.
func (h *host) Index() int64 { return h.World.Index }

// Known implements resolver.Host.
func (h *host) Known(position int) (resolver.Record, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rec, ok := h.records[position]
	return rec, ok, nil
}

// Positions implements resolver.Host.
func (h *host) Positions() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []int
	for p := range h.records {
		list = append(list, p)
	}
	return list
}

// Save implements resolver.Host.
func (h *host) Save(position int, rec resolver.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.save(position, rec)
}

// save records under the lock, and dies if it is time.
func (h *host) save(position int, rec resolver.Record) error {
	h.records[position] = rec
	if h.dieAfter > 0 {
		if h.dieAfter--; h.dieAfter == 0 {
			h.dieAfter = -1
		}
	}
	if h.dieAfter == -1 {
		h.dieAfter = -2
		return errDied
	}
	return nil
}

// Fork implements resolver.Host.
func (h *host) Fork(n int, body func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { body(i) })
	}
	wg.Wait()
}

func raw(v any) (json.RawMessage, *resolver.Error) {
	b, err := value.Encode(v)
	if err != nil {
		return nil, &resolver.Error{Code: "BAD_RESULT", Message: err.Error()}
	}
	return b, nil
}
