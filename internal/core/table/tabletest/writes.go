package tabletest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/core/table"
)

var writeTests = []test{
	{"PutThenGet", func(t *testing.T, f *fixture) {
		f.absent("a")
		f.put(f.item("a", 7, "seven"), table.Always())
		f.stored(f.item("a", 7, "seven"))
		f.put(f.item("a", 3, "three"), table.Always()) // the version is the writer's choice
		f.stored(f.item("a", 3, "three"))
		f.absent("b")
	}},
	{"EmptyData", func(t *testing.T, f *fixture) {
		f.put(table.Item{Key: f.key("nil"), Version: 1}, table.Always())
		f.put(table.Item{Key: f.key("empty"), Version: 1, Data: []byte{}}, table.Always())
		f.stored(f.item("nil", 1, ""))
		f.stored(f.item("empty", 1, ""))
	}},
	{"BinaryData", func(t *testing.T, f *fixture) {
		f.put(f.item("a", 1, "\x00\xff\xfe\x00'\"\n"), table.Always())
		f.stored(f.item("a", 1, "\x00\xff\xfe\x00'\"\n"))
	}},
	{"LargeVersions", func(t *testing.T, f *fixture) {
		const largest = 1<<63 - 1
		f.put(f.item("a", largest-1, "x"), table.Always())
		f.put(f.item("a", largest, "y"), table.VersionIs(largest-1))
		f.stored(f.item("a", largest, "y"))
	}},
	{"DataIsTheCallersOwn", testOwnData},
	{"PutManyHundreds", testPutMany},
	{"GetManyMissingAndDuplicateKeys", testGetMany},
	{"PartitionsAreApart", func(t *testing.T, f *fixture) {
		other := table.Item{Key: table.Key{Part: f.part + "x", Sort: "a"}, Version: 2, Data: []byte("other")}
		f.put(f.item("a", 1, "mine"), table.Absent())
		f.put(other, table.Absent())
		f.stored(f.item("a", 1, "mine"))
		f.stored(other)
		f.expect(nil, f.Delete(t.Context(), f.key("a"), table.Always()))
		f.stored(other)
	}},
	{"ManyWritersAtOnce", testManyWriters},
}

func testOwnData(t *testing.T, f *fixture) {
	data := []byte("before")
	f.put(table.Item{Key: f.key("put"), Version: 1, Data: data}, table.Always())
	f.expect(nil, f.PutMany(t.Context(), []table.Item{{Key: f.key("many"), Version: 1, Data: data}}))
	copy(data, "AFTER!") // what was passed in is the caller's again
	for _, sort := range []string{"put", "many"} {
		got, err := f.Get(t.Context(), f.key(sort))
		f.expect(nil, err)
		f.same(got, f.item(sort, 1, "before"))
		copy(got.Data, "AFTER!") // and so is what came out
	}
	got, err := f.GetMany(t.Context(), []table.Key{f.key("put"), f.key("many")})
	f.expect(nil, err)
	for _, item := range got {
		f.same(item, f.item(item.Sort, 1, "before"))
		copy(item.Data, "AFTER!")
	}
	for item, err := range f.Query(t.Context(), table.Query{Part: f.part}) {
		f.expect(nil, err)
		f.same(item, f.item(item.Sort, 1, "before"))
		copy(item.Data, "AFTER!")
	}
	f.stored(f.item("put", 1, "before"))
	f.stored(f.item("many", 1, "before"))
}

func testPutMany(t *testing.T, f *fixture) {
	f.expect(nil, f.PutMany(t.Context(), nil))
	f.put(f.item("0007", 9, "old"), table.Always())
	var items []table.Item
	var keys []table.Key
	for i := range 730 {
		items = append(items, f.item(fmt.Sprintf("%04d", i), int64(i+1), strings.Repeat("x", i)))
		keys = append(keys, items[i].Key)
	}
	f.expect(nil, f.PutMany(t.Context(), items))
	got, err := f.GetMany(t.Context(), keys)
	f.expect(nil, err)
	if len(got) != len(items) {
		t.Fatalf("got %d items, want %d", len(got), len(items))
	}
	byKey := map[table.Key]table.Item{}
	for _, item := range got {
		byKey[item.Key] = item
	}
	for _, want := range items {
		f.same(byKey[want.Key], want)
	}
}

func testGetMany(t *testing.T, f *fixture) {
	got, err := f.GetMany(t.Context(), nil)
	if err != nil || len(got) != 0 {
		t.Fatalf("no keys: got %v, %v", got, err)
	}
	f.put(f.item("a", 1, "A"), table.Always())
	f.put(f.item("b", 2, "B"), table.Always())
	got, err = f.GetMany(t.Context(), []table.Key{f.key("b"), f.key("x"), f.key("a"), f.key("b"), f.key("x")})
	f.expect(nil, err)
	if len(got) != 2 {
		t.Fatalf("got %d items, want each of the two once", len(got))
	}
	if got[0].Sort == "b" {
		got[0], got[1] = got[1], got[0]
	}
	f.same(got[0], f.item("a", 1, "A"))
	f.same(got[1], f.item("b", 2, "B"))
}

// testManyWriters has 50 writers put different items while readers look: each write that returned is seen.
func testManyWriters(t *testing.T, f *fixture) {
	var wg sync.WaitGroup
	var seen atomic.Int64
	for w := range 50 {
		wg.Go(func() {
			for i := range 6 {
				item := f.item(fmt.Sprintf("%d/%d", w, i), int64(i+1), fmt.Sprint(w))
				if err := f.Put(t.Context(), item, table.Absent()); err != nil {
					t.Errorf("put %s: %v", item.Key, err)
					return
				}
				got, err := f.Get(t.Context(), item.Key)
				if err != nil || got.Version != item.Version {
					t.Errorf("read after write of %s: %v, %v", item.Key, got.Version, err)
					return
				}
				seen.Add(1)
			}
		})
	}
	wg.Wait()
	if n := len(f.sorts(table.Query{Part: f.part})); int64(n) != seen.Load() || n != 300 {
		t.Fatalf("%d items are stored and %d writes were seen, want 300", n, seen.Load())
	}
}

var conditionTests = []test{
	{"AbsentWritesOnlyOnce", func(t *testing.T, f *fixture) {
		f.put(f.item("a", 1, "first"), table.Absent())
		f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 2, "second"), table.Absent()))
		f.stored(f.item("a", 1, "first"))
	}},
	{"VersionIsMatches", func(t *testing.T, f *fixture) {
		f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 1, "x"), table.VersionIs(1)))
		f.absent("a")
		f.put(f.item("a", 1, "one"), table.Always())
		f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 3, "x"), table.VersionIs(2)))
		f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 3, "x"), table.VersionIs(0)))
		f.put(f.item("a", 2, "two"), table.VersionIs(1))
		f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 2, "x"), table.VersionIs(1)))
		f.stored(f.item("a", 2, "two"))
	}},
	{"DeleteConditions", testDelete},
	{"OneWinnerOfAbsent", testOneWinner},
	{"NoLostUpdate", testNoLostUpdate},
}

func testDelete(t *testing.T, f *fixture) {
	del := func(cond table.If) error { return f.Delete(t.Context(), f.key("a"), cond) }
	f.expect(nil, del(table.Always()))
	f.expect(nil, del(table.Absent()))
	f.expect(table.ErrConflict, del(table.VersionIs(1)))

	f.put(f.item("a", 4, "x"), table.Always())
	f.put(f.item("b", 4, "x"), table.Always())
	f.expect(table.ErrConflict, del(table.Absent()))
	f.expect(table.ErrConflict, del(table.VersionIs(3)))
	f.stored(f.item("a", 4, "x"))
	f.expect(nil, del(table.VersionIs(4)))
	f.absent("a")
	f.expect(table.ErrConflict, del(table.VersionIs(4)))

	f.put(f.item("a", 5, "x"), table.Absent())
	f.expect(nil, del(table.Always()))
	f.absent("a")
	f.stored(f.item("b", 4, "x"))
}

// testOneWinner has 50 writers claim the same items: exactly one gets each, and it is the one that is stored.
func testOneWinner(t *testing.T, f *fixture) {
	const claims = 5
	winner := [claims]atomic.Int64{}
	var wg sync.WaitGroup
	for w := range int64(50) {
		wg.Go(func() {
			for c := range claims {
				err := f.Put(t.Context(), f.item(fmt.Sprint(c), w+1, ""), table.Absent())
				switch {
				case err == nil:
					if !winner[c].CompareAndSwap(0, w+1) {
						t.Errorf("claim %d was won twice", c)
					}
				case !errors.Is(err, table.ErrConflict):
					t.Errorf("claim %d: %v", c, err)
				}
			}
		})
	}
	wg.Wait()
	for c := range claims {
		f.stored(f.item(fmt.Sprint(c), winner[c].Load(), ""))
	}
}

// testNoLostUpdate has 50 writers count up one item by compare-and-swap.
func testNoLostUpdate(t *testing.T, f *fixture) {
	const writers, each = 50, 3
	f.put(f.item("n", 1, "0"), table.Always())
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := increment(t, f); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.stored(f.item("n", 1+writers*each, fmt.Sprint(writers*each)))
}

func increment(t *testing.T, f *fixture) error {
	for {
		item, err := f.Get(t.Context(), f.key("n"))
		if err != nil {
			return err
		}
		var n int
		if _, err := fmt.Sscan(string(item.Data), &n); err != nil {
			return err
		}
		err = f.Put(t.Context(), f.item("n", item.Version+1, fmt.Sprint(n+1)), table.VersionIs(item.Version))
		if !errors.Is(err, table.ErrConflict) {
			return err
		}
	}
}
