package tabletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/internal/core/table"
)

var queryTests = []test{
	{"QueryThousandsInOrder", testThousands},
	{"QueryOrdersBytewise", testBytewise},
	{"QueryBounds", testBounds},
	{"QueryByPrefix", testPrefix},
	{"QueryPastOneMegabyte", testMegabytes},
	{"QueryBreakingOff", testBreak},
	{"QueryOfNothing", func(t *testing.T, f *fixture) {
		for _, q := range []table.Query{{Part: f.part}, {Part: f.part, Reverse: true}, table.Prefix(f.part, "x")} {
			if got := f.sorts(q); len(got) != 0 {
				t.Errorf("%+v yielded %q", q, got)
			}
		}
	}},
	{"QueryWhileWriting", testWhileWriting},
}

func testThousands(t *testing.T, f *fixture) {
	want := f.fill(3000, 10)
	for _, q := range []table.Query{{}, {Reverse: true}, {Limit: 1}, {Limit: 999}, {Limit: 999, Reverse: true}, {Limit: 5000}} {
		q.Part = f.part
		expected := slices.Clone(want)
		if q.Reverse {
			slices.Reverse(expected)
		}
		if q.Limit > 0 {
			expected = expected[:min(q.Limit, len(expected))]
		}
		if got := f.sorts(q); !slices.Equal(got, expected) {
			t.Errorf("limit %d, reverse %v: got %d keys %.3q..., want %d keys %.3q...",
				q.Limit, q.Reverse, len(got), got[:min(3, len(got))], len(expected), expected[:3])
		}
	}
	from, to := fmt.Sprintf("%08d", 700), fmt.Sprintf("%08d", 2300)
	if got := f.sorts(table.Query{Part: f.part, From: from, To: to}); !slices.Equal(got, want[700:2300]) {
		t.Errorf("from 700 to 2300: got %d keys", len(got))
	}
	backwards := slices.Clone(want[700:2300])
	slices.Reverse(backwards)
	got := f.sorts(table.Query{Part: f.part, From: from, To: to, Reverse: true, Limit: 600})
	if !slices.Equal(got, backwards[:600]) {
		t.Errorf("the last 600 from 700 to 2300: got %d keys", len(got))
	}
}

// fill writes n items of size bytes in no good order and returns their sort keys in order.
func (f *fixture) fill(n, size int) []string {
	f.t.Helper()
	sorts := make([]string, n)
	items := make([]table.Item, n)
	data := strings.Repeat("d", size)
	for i := range n {
		sorts[i] = fmt.Sprintf("%08d", i)
		items[i*7919%n] = f.item(sorts[i], int64(i+1), data) // 7919 is a prime and no divisor of n: a permutation
	}
	f.expect(nil, f.PutMany(f.t.Context(), items))
	return sorts
}

func testBytewise(t *testing.T, f *fixture) {
	// In the order of their UTF-8 bytes, which is neither that of UTF-16 (the last two) nor of any language.
	want := []string{"\x00", "\x00\x00", "\x01", " ", "#1", "#10", "#2", "A", "B", "Z", "a", "a\x00", "a\x00b", "aa", "b", "z",
		"~", "\u00e4", "\u00f6", "\u0416", "\u65e5", "\uffee", "\U0001f600"}
	for i := range want {
		f.put(f.item(want[i*7%len(want)], 1, ""), table.Absent())
	}
	if got := f.sorts(table.Query{Part: f.part}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := f.sorts(table.Query{Part: f.part, From: "a", To: "aa"}); !slices.Equal(got, []string{"a", "a\x00", "a\x00b"}) {
		t.Errorf("from a to aa: got %q", got)
	}
	if got := f.sorts(table.Query{Part: f.part, From: "\u00f6", Reverse: true, Limit: 2}); !slices.Equal(got, []string{"\U0001f600", "\uffee"}) {
		t.Errorf("the last two: got %q", got)
	}
}

func testBounds(t *testing.T, f *fixture) {
	for _, sort := range []string{"b", "d", "f"} {
		f.put(f.item(sort, 1, ""), table.Always())
	}
	for _, tt := range []struct{ from, to, want string }{
		{"", "", "bdf"}, {"b", "", "bdf"}, {"c", "", "df"}, {"f", "", "f"}, {"g", "", ""},
		{"", "b", ""}, {"", "c", "b"}, {"", "f", "bd"}, {"", "g", "bdf"},
		{"b", "f", "bd"}, {"b\x00", "f\x00", "df"}, {"d", "d", ""}, {"f", "b", ""}, {"c", "d", ""}, {"d", "e", "d"},
	} {
		for _, reverse := range []bool{false, true} {
			want := []byte(tt.want)
			if reverse {
				slices.Reverse(want)
			}
			got := strings.Join(f.sorts(table.Query{Part: f.part, From: tt.from, To: tt.to, Reverse: reverse}), "")
			if got != string(want) {
				t.Errorf("from %q to %q reverse %v: got %q, want %q", tt.from, tt.to, reverse, got, want)
			}
		}
	}
}

func testPrefix(t *testing.T, f *fixture) {
	last := "p\U0010FFFF" // the last code point that there is
	all := []string{"o", "p", "p/", "p/1", "p/2", "p0", "p\u00e4", last, last + "x", "q"}
	for _, sort := range all {
		f.put(f.item(sort, 1, ""), table.Always())
	}
	for prefix, want := range map[string][]string{
		"":      all,
		"p":     all[1:9],
		"p/":    all[2:5],
		"p/1":   all[3:4],
		"p/3":   nil,
		last:    all[7:9],
		"zebra": nil,
	} {
		if got := f.sorts(table.Prefix(f.part, prefix)); !slices.Equal(got, want) {
			t.Errorf("prefix %q: got %q, want %q", prefix, got, want)
		}
	}
}

func testMegabytes(t *testing.T, f *fixture) {
	want := f.fill(40, 100_000) // 4 MB; DynamoDB pages at 1 MB
	if got := f.sorts(table.Query{Part: f.part}); !slices.Equal(got, want) {
		t.Errorf("forward: got %q", got)
	}
	slices.Reverse(want)
	if got := f.sorts(table.Query{Part: f.part, Reverse: true}); !slices.Equal(got, want) {
		t.Errorf("reverse: got %q", got)
	}
	if got := f.sorts(table.Query{Part: f.part, Reverse: true, Limit: 33}); !slices.Equal(got, want[:33]) {
		t.Errorf("the last 33: got %q", got)
	}
}

func testBreak(t *testing.T, f *fixture) {
	want := f.fill(1000, 10)
	for _, n := range []int{1, 8, 9, 500} {
		var got []string
		for item, err := range f.Query(t.Context(), table.Query{Part: f.part}) {
			f.expect(nil, err)
			if got = append(got, item.Sort); len(got) == n {
				break
			}
		}
		if !slices.Equal(got, want[:n]) {
			t.Errorf("after %d items: got %q", n, got)
		}
	}
	// The same query value can be run again.
	seq := f.Query(t.Context(), table.Query{Part: f.part, Limit: 2})
	for range 2 {
		n := 0
		for _, err := range seq {
			f.expect(nil, err)
			n++
		}
		if n != 2 {
			t.Errorf("a query run again yielded %d items, want 2", n)
		}
	}
}

// testWhileWriting has the caller delete what the query yields, nested reads included: nothing may wait for anything.
func testWhileWriting(t *testing.T, f *fixture) {
	want := f.fill(600, 10)
	n := 0
	for item, err := range f.Query(t.Context(), table.Query{Part: f.part}) {
		f.expect(nil, err)
		if item.Sort != want[n] {
			t.Fatalf("item %d is %s, want %s", n, item.Sort, want[n])
		}
		if n++; n%20 == 0 {
			f.stored(item)
			if first := f.sorts(table.Query{Part: f.part, From: item.Sort, Limit: 1}); len(first) != 1 {
				t.Fatalf("nested query: got %q", first)
			}
			f.expect(nil, f.Delete(t.Context(), item.Key, table.Always()))
		}
	}
	if left := len(f.sorts(table.Query{Part: f.part})); n != 600 || left != 570 {
		t.Errorf("saw %d items and left %d, want 600 and 570", n, left)
	}
}
