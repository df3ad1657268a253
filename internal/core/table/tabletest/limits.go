package tabletest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/table"
)

var limitTests = []test{
	{"ItemSizeLimit", testItemSize},
	{"LongestKeys", func(t *testing.T, f *fixture) {
		f.part += strings.Repeat("p", table.MaxPart-len(f.part))
		sort := strings.Repeat("s", table.MaxSort)
		f.put(f.item(sort, 1, "x"), table.Absent())
		f.stored(f.item(sort, 1, "x"))
		if got := f.sorts(table.Query{Part: f.part, From: sort}); len(got) != 1 {
			t.Errorf("query from the longest key: got %d items", len(got))
		}
		f.expect(nil, f.Delete(t.Context(), f.key(sort), table.Always()))
	}},
	{"InvalidKeys", testInvalidKeys},
	{"KeysThatLookLikeSyntax", func(t *testing.T, f *fixture) {
		for _, sort := range []string{"'", `"`, "%", "_", `\`, "a' OR '1'='1", "#", ":v", "$x", "?", " ", "\n", "\U0001f600"} {
			f.put(f.item(sort, 1, sort), table.Absent())
			f.stored(f.item(sort, 1, sort))
			f.expect(nil, f.Delete(t.Context(), f.key(sort), table.Always()))
			f.absent(sort)
		}
	}},
}

// testItemSize checks the exact boundary: 390 KB of keys and data together fit, one byte more does not.
func testItemSize(t *testing.T, f *fixture) {
	const limit = 399_360 // 390 * 1024
	room := limit - len(f.part) - len("a")
	fits, over := f.item("a", 1, strings.Repeat("x", room)), f.item("a", 2, strings.Repeat("x", room+1))
	f.put(fits, table.Absent())
	f.stored(fits)
	f.expect(nil, f.PutMany(t.Context(), []table.Item{fits}))
	f.expect(table.ErrTooLarge, f.Put(t.Context(), over, table.Always()))
	f.expect(table.ErrTooLarge, f.Put(t.Context(), over, table.VersionIs(1)))
	f.expect(table.ErrTooLarge, f.PutMany(t.Context(), []table.Item{f.item("b", 1, "small"), over}))
	f.stored(fits)
	f.absent("b") // one that cannot be written keeps all from being written
	if got := f.sorts(table.Query{Part: f.part}); len(got) != 1 {
		t.Errorf("query: got %d items, want 1", len(got))
	}
}

func testInvalidKeys(t *testing.T, f *fixture) {
	ctx := t.Context()
	for name, key := range map[string]table.Key{
		"empty part":       {Part: "", Sort: "a"},
		"empty sort":       {Part: f.part, Sort: ""},
		"part too long":    {Part: strings.Repeat("p", table.MaxPart+1), Sort: "a"},
		"sort too long":    {Part: f.part, Sort: strings.Repeat("s", table.MaxSort+1)},
		"part not UTF-8":   {Part: f.part + "\xff", Sort: "a"},
		"sort not UTF-8":   {Part: f.part, Sort: "\xc3\x28"},
		"sort half a rune": {Part: f.part, Sort: "\u65e5"[:2]},
	} {
		bad := table.Item{Key: key, Version: 1}
		_, getErr := f.Get(ctx, key)
		_, manyErr := f.GetMany(ctx, []table.Key{f.key("a"), key})
		for op, err := range map[string]error{
			"Put":     f.Put(ctx, bad, table.Always()),
			"PutMany": f.PutMany(ctx, []table.Item{f.item("a", 1, "x"), bad}),
			"Delete":  f.Delete(ctx, key, table.Always()),
			"Get":     getErr,
			"GetMany": manyErr,
		} {
			if !errors.Is(err, table.ErrInvalid) {
				t.Errorf("%s, %s: got %v, want ErrInvalid", op, name, err)
			}
		}
	}
	for _, q := range []table.Query{{}, {Part: f.part + "\xff"}, {Part: f.part, From: "\xff"}, {Part: f.part, To: "a\xff"}} {
		for _, err := range f.Query(ctx, q) {
			if !errors.Is(err, table.ErrInvalid) {
				t.Errorf("query %+v: got %v, want ErrInvalid", q, err)
			}
		}
	}
	f.absent("a")
}

var contextTests = []test{
	{"EndedContextLeavesNoEffect", testEndedContext},
	{"ContextEndsDuringQuery", testContextDuringQuery},
}

func testEndedContext(t *testing.T, f *fixture) {
	f.put(f.item("a", 1, "x"), table.Always())
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
		_, err := f.Get(ctx, f.key("a"))
		f.expect(want, err)
		_, err = f.GetMany(ctx, []table.Key{f.key("a")})
		f.expect(want, err)
		f.expect(want, f.Put(ctx, f.item("b", 1, "x"), table.Absent()))
		f.expect(want, f.Put(ctx, f.item("a", 2, "y"), table.Always()))
		f.expect(want, f.PutMany(ctx, []table.Item{f.item("b", 1, "x"), f.item("c", 1, "x")}))
		f.expect(want, f.Delete(ctx, f.key("a"), table.Always()))
		steps := 0
		for item, err := range f.Query(ctx, table.Query{Part: f.part}) {
			steps++
			if !errors.Is(err, want) {
				t.Fatalf("query: got %s, %v; want %v", item.Key, err, want)
			}
		}
		if steps != 1 {
			t.Fatalf("query yielded %d times, want the error once", steps)
		}
	}
	f.stored(f.item("a", 1, "x"))
	f.absent("b")
	f.absent("c")
}

// testContextDuringQuery allows for items that were read ahead, but not for the end of 4 MB as if nothing had happened.
func testContextDuringQuery(t *testing.T, f *fixture) {
	f.fill(40, 100_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range f.Query(ctx, table.Query{Part: f.part}) {
		if last != nil {
			t.Fatal("the query went on after an error")
		}
		cancel()
		n++
		last = err
	}
	if !errors.Is(last, context.Canceled) || n < 2 || n > 40 {
		t.Errorf("the query ended after %d steps with %v, want context.Canceled", n, last)
	}
}
