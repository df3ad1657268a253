package tabletest

import (
	"strconv"
	"testing"
	"time"

	"sluice/internal/core/table"
)

var expiryTests = []test{
	{"ExpiredIsHiddenAtOnce", testHidden},
	{"ExpiryIsWholeSecondsRoundedUp", func(t *testing.T, f *fixture) {
		hour := time.Now().Add(time.Hour).Truncate(time.Second)
		for i, tt := range []struct{ put, want time.Time }{
			{hour, hour},
			{hour.Add(1), hour.Add(time.Second)},
			{hour.Add(999_999_999), hour.Add(time.Second)},
			{hour.In(time.FixedZone("east", 7200)), hour},
			{time.Time{}, time.Time{}},
		} {
			item := f.item(strconv.Itoa(i), 1, "x")
			item.Expires = tt.put
			f.put(item, table.Always())
			item.Expires = tt.want
			f.stored(item)
		}
	}},
	{"OverwritingChangesExpiry", func(t *testing.T, f *fixture) {
		hour := time.Now().Add(time.Hour).Truncate(time.Second)
		item := f.item("a", 1, "x")
		item.Expires = hour
		f.put(item, table.Always())
		f.put(f.item("a", 2, "y"), table.VersionIs(1))
		f.stored(f.item("a", 2, "y")) // never, again
		item.Version = 3
		f.expect(nil, f.PutMany(t.Context(), []table.Item{item}))
		f.stored(item)
	}},
	{"ExpiredCountsAsAbsent", testExpiredIsAbsent},
}

// expired puts an item whose time is over. Times before 1970 are odd but no reason to keep it forever.
func (f *fixture) expired(sort string) table.Item {
	item := f.item(sort, 1, "old")
	item.Expires = time.Now().Add(-2 * time.Second)
	f.put(item, table.Always())
	return item
}

func testHidden(t *testing.T, f *fixture) {
	f.put(f.item("a", 1, "x"), table.Always())
	f.expired("b")
	f.put(f.item("c", 1, "x"), table.Always())
	ancient := f.item("d", 1, "x")
	for _, ancient.Expires = range []time.Time{time.Unix(0, 0), time.Unix(-5, 0), time.Unix(1, 0)} {
		f.put(ancient, table.Always())
		f.absent("d")
	}
	f.absent("b")
	got, err := f.GetMany(t.Context(), []table.Key{f.key("a"), f.key("b"), f.key("d")})
	if err != nil || len(got) != 1 || got[0].Sort != "a" {
		t.Errorf("GetMany: got %v, %v", got, err)
	}
	for _, q := range []table.Query{{Limit: 2}, {Reverse: true}} {
		q.Part = f.part
		if got := f.sorts(q); len(got) != 2 || got[0]+got[1] != "ac" && got[0]+got[1] != "ca" {
			t.Errorf("query %+v: got %q, want a and c", q, got)
		}
	}
	// A limit counts what is yielded, also behind many that are hidden.
	var many []table.Item
	for i := range 300 {
		item := f.item("b"+strconv.Itoa(1000+i), 1, "old")
		item.Expires = time.Now().Add(-time.Hour)
		many = append(many, item)
	}
	f.expect(nil, f.PutMany(t.Context(), many))
	if got := f.sorts(table.Query{Part: f.part, From: "b", Limit: 1}); len(got) != 1 || got[0] != "c" {
		t.Errorf("behind 300 hidden items: got %q, want c", got)
	}
}

func testExpiredIsAbsent(t *testing.T, f *fixture) {
	f.expired("a")
	f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 2, "x"), table.VersionIs(1)))
	f.put(f.item("a", 5, "new"), table.Absent())
	f.stored(f.item("a", 5, "new"))
	f.expect(table.ErrConflict, f.Put(t.Context(), f.item("a", 6, "x"), table.Absent()))

	f.expired("b")
	f.expect(table.ErrConflict, f.Delete(t.Context(), f.key("b"), table.VersionIs(1)))
	f.expect(nil, f.Delete(t.Context(), f.key("b"), table.Absent()))
	f.expect(nil, f.Delete(t.Context(), f.key("b"), table.Always()))
	f.absent("b")
}

var bubbleTests = []test{
	{"ExpiresOnTheSecond", func(t *testing.T, f *fixture) {
		item := f.item("a", 1, "x")
		item.Expires = time.Now().Add(10*time.Second + time.Nanosecond) // a bubble starts on a whole second
		f.put(item, table.Always())
		time.Sleep(11*time.Second - time.Nanosecond)
		item.Expires = item.Expires.Add(time.Second - time.Nanosecond)
		f.stored(item)
		f.expect(table.ErrConflict, f.Put(t.Context(), item, table.Absent()))
		time.Sleep(time.Nanosecond)
		f.absent("a")
		if got := f.sorts(table.Query{Part: f.part}); len(got) != 0 {
			t.Errorf("query: got %q", got)
		}
		f.put(f.item("a", 1, "y"), table.Absent())
		f.stored(f.item("a", 1, "y"))
	}},
	{"WorksForYears", func(t *testing.T, f *fixture) {
		for i := range 30 { // whatever is done now and then is done meanwhile
			item := f.item(strconv.Itoa(i), 1, "x")
			item.Expires = time.Now().Add(time.Hour)
			f.put(item, table.Absent())
			f.stored(item)
			time.Sleep(24 * time.Hour * 100)
			f.absent(item.Sort)
		}
		if got := f.sorts(table.Query{Part: f.part}); len(got) != 0 {
			t.Errorf("query: got %q", got)
		}
	}},
}
