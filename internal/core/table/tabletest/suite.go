// Package tabletest is the contract of the table port: Run is the suite that every adapter must pass, RunInBubble adds
// what needs a fake clock, and Faulty is a table that fails on demand. The suite owns the meaning of the port; it assumes
// nothing beyond it, so that it runs unchanged over a file, memory and a service on the network.
package tabletest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"

	"sluice/internal/core/table"
)

type test struct {
	name string
	run  func(*testing.T, *fixture)
}

// Run checks an adapter. open returns a table that is closed when its test ends; it may hold items of others, since
// every test keeps to partitions of its own.
func Run(t *testing.T, open func(t *testing.T) table.Table) {
	for _, group := range [][]test{writeTests, conditionTests, queryTests, limitTests, expiryTests, contextTests} {
		for _, tt := range group {
			t.Run(tt.name, func(t *testing.T) { tt.run(t, newFixture(t, open(t))) })
		}
	}
}

// RunInBubble checks, under a fake clock, what happens as time passes. open is called inside a synctest bubble: no
// goroutine of the table may outlive the test's cleanup. It is for adapters that need no network.
func RunInBubble(t *testing.T, open func(t *testing.T) table.Table) {
	for _, tt := range bubbleTests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t, newFixture(t, open(t))) })
		})
	}
}

// fixture is a table, a partition that nobody else uses, and assertions over both.
type fixture struct {
	table.Table
	part string
	t    *testing.T
}

func newFixture(t *testing.T, tab table.Table) *fixture {
	return &fixture{Table: tab, part: t.Name() + "#" + rand.Text(), t: t}
}

func (f *fixture) key(sort string) table.Key { return table.Key{Part: f.part, Sort: sort} }

func (f *fixture) item(sort string, version int64, data string) table.Item {
	return table.Item{Key: f.key(sort), Version: version, Data: []byte(data)}
}

// put writes and requires success.
func (f *fixture) put(item table.Item, cond table.If) {
	f.t.Helper()
	f.expect(nil, f.Put(f.t.Context(), item, cond))
}

// expect requires an outcome: nil, or an error that is want.
func (f *fixture) expect(want, err error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Fatalf("got error %v, want %v", err, want)
	}
}

// stored requires that a read finds exactly this item.
func (f *fixture) stored(want table.Item) {
	f.t.Helper()
	got, err := f.Get(f.t.Context(), want.Key)
	if err != nil {
		f.t.Fatalf("get: %v", err)
	}
	f.same(got, want)
}

func (f *fixture) absent(sort string) {
	f.t.Helper()
	_, err := f.Get(f.t.Context(), f.key(sort))
	f.expect(table.ErrNotFound, err)
}

func (f *fixture) same(got, want table.Item) {
	f.t.Helper()
	if got.Key != want.Key || got.Version != want.Version || !bytes.Equal(got.Data, want.Data) || !got.Expires.Equal(want.Expires) {
		f.t.Fatalf("got %s version %d, %d bytes, expires %v; want %s version %d, %d bytes, expires %v",
			got.Key, got.Version, len(got.Data), got.Expires, want.Key, want.Version, len(want.Data), want.Expires)
	}
}

// sorts runs a query and returns the sort keys in the order they came.
func (f *fixture) sorts(q table.Query) []string {
	f.t.Helper()
	var got []string
	for item, err := range f.Query(f.t.Context(), q) {
		if err != nil {
			f.t.Fatalf("query %+v: %v", q, err)
		}
		if item.Part != q.Part {
			f.t.Fatalf("query of %s yielded %s", q.Part, item.Key)
		}
		got = append(got, item.Sort)
	}
	return got
}
