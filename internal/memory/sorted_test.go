package memory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortedBehavesLikeASortedMap drives the ordered map and a plain one with the same operations. Ranges of keys are
// written and removed at once, so that chunks fill, split and vanish.
func TestSortedBehavesLikeASortedMap(t *testing.T) {
	key := func(n int) string { return fmt.Sprintf("%04d", n) }
	rapid.Check(t, func(t *rapid.T) {
		s, model := &sorted{}, map[string]int64{}
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			start := rapid.IntRange(0, 2000).Draw(t, "start")
			count := rapid.IntRange(1, 400).Draw(t, "count")
			stride := rapid.IntRange(1, 3).Draw(t, "stride")
			remove := rapid.IntRange(0, 2).Draw(t, "remove") == 0
			down := rapid.Bool().Draw(t, "down")
			for i := range count {
				if down {
					i = count - 1 - i
				}
				k := key(start + i*stride)
				if remove {
					s.remove(k)
					delete(model, k)
				} else {
					s.put(entry{sort: k, version: int64(step)})
					model[k] = int64(step)
				}
			}
			from, to := key(rapid.IntRange(0, 3000).Draw(t, "from")), key(rapid.IntRange(0, 3000).Draw(t, "to"))
			compare(t, s, model, span{from: from, to: to})
		}
		compare(t, s, model, span{})
	})
}

func compare(t *rapid.T, s *sorted, model map[string]int64, c span) {
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(k string) bool {
		return k < c.from || c.to != "" && k >= c.to
	})
	for _, c.reverse = range []bool{false, true} {
		var got []string
		for e := range s.scan(c) {
			got = append(got, e.sort)
			if e.version != model[e.sort] || s.get(e.sort) != e {
				t.Fatalf("%s has version %d, want %d", e.sort, e.version, model[e.sort])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("span %+v: got %d keys, want %d", c, len(got), len(want))
		}
		slices.Reverse(want)
	}
	for _, chunk := range s.chunks {
		if len(chunk) == 0 || len(chunk) > chunkSize {
			t.Fatalf("a chunk of %d entries", len(chunk))
		}
	}
}
