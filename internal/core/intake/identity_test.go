package intake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

func duplicatesOf(t *testing.T, st *store.Store, run string, in Sealed) (all []Duplicate) {
	t.Helper()
	for d, err := range Duplicates(t.Context(), st, run, in) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestM3FirstRowWins(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		text := "email,n\na@x,1\nb@x,2\n\na@x,3\nc@x,4\nb@x,5\na@x,6\n"
		in := mustSeal(t, st, "r", openText(t, "t.csv", text, Options{}), ByColumns("email"))
		if in.Total != 6 || in.Duplicates != 3 || in.Rows != 3 {
			t.Errorf("%+v", in)
		}
		rows, index := allRows(t, st, "r")
		var ns []any
		for _, r := range rows {
			ns = append(ns, r["n"])
		}
		if d := cmp.Diff([]any{"1", "2", "4"}, ns) + cmp.Diff([]int64{0, 1, 3}, index); d != "" {
			t.Error(d)
		}
		want := []Duplicate{{Row: 3, Line: 5, First: 1}, {Row: 5, Line: 7, First: 2}, {Row: 6, Line: 8, First: 1}}
		if d := cmp.Diff(want, duplicatesOf(t, st, "r", in)); d != "" {
			t.Error(d)
		}
	})
}

func TestM3ManyDuplicatesAreListedInOrder(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		text := "a\n" + strings.Repeat("x\n", 2*dupsPer+2)
		in := mustSeal(t, st, "r", openText(t, "t.csv", text, Options{}), ByColumns("a"))
		all := duplicatesOf(t, st, "r", in)
		if len(all) != 2*dupsPer+1 {
			t.Fatalf("%d listed", len(all))
		}
		for i, d := range all {
			if d != (Duplicate{Row: int64(i) + 2, Line: int64(i) + 3, First: 1}) {
				t.Fatalf("%d: %+v", i, d)
			}
		}
	})
}

func TestM3KindsOfKeys(t *testing.T) {
	csv := "a,b\nx,yz\nxy,z\nx,yz\nX,yz\n"
	lower := func(row map[string]any, _ int64) (any, error) { return strings.ToLower(row["a"].(string)), nil }
	cases := map[string]struct {
		name, text string
		id         Identity
		rows       int64
	}{
		"position":       {"t.csv", csv, Position(), 4},
		"one column":     {"t.csv", csv, ByColumns("b"), 2},
		"two columns":    {"t.csv", csv, ByColumns("a", "b"), 3}, // x+yz is not xy+z
		"expression":     {"t.csv", csv, ByKey(lower), 2},
		"types differ":   {"t.jsonl", "{\"k\":1}\n{\"k\":\"1\"}\n{\"k\":true}\n{\"k\":1}", ByColumns("k"), 3},
		"objects":        {"t.jsonl", `{"k":{"a":1,"b":2}}` + "\n" + `{"k":{"b":2,"a":1}}`, ByColumns("k"), 1},
		"column appears": {"t.jsonl", `{"x":1,"k":1}` + "\n" + `{"k":1}`, ByColumns("k"), 1},
		"by index":       {"t.csv", csv, ByKey(func(_ map[string]any, index int64) (any, error) { return index / 2, nil }), 2},
	}
	for name, c := range cases {
		st := &store.Store{Table: memory.New()}
		if in := mustSeal(t, st, "r", openText(t, c.name, c.text, Options{}), c.id); in.Rows != c.rows {
			t.Errorf("%s: %d rows, want %d", name, in.Rows, c.rows)
		}
	}
}

func TestM3EmptyKeysAreRefused(t *testing.T) {
	key := func(k any) Identity { return ByKey(func(map[string]any, int64) (any, error) { return k, nil }) }
	cases := map[string]struct {
		name, text string
		id         Identity
		want       string
	}{
		"empty text":     {"t.csv", "a,b\n1,2\n\n,3\n", ByColumns("a"), `row 2 (line 4): the key is empty: the column "a" has no value`},
		"part of a key":  {"t.csv", "a,b\n1,2\n1,\n", ByColumns("a", "b"), `row 2 (line 3): the key is empty: the column "b" has no value`},
		"null":           {"t.jsonl", `{"a":null}`, ByColumns("a"), `row 1 (line 1): the key is empty`},
		"not there":      {"t.jsonl", "{\"a\":1}\n{}", ByColumns("a"), `row 2 (line 2): the key is empty`},
		"in an array":    {"t.json", `[{"a":1},{"b":1}]`, ByColumns("a"), `row 2 (element 2): the key is empty`},
		"computed null":  {"t.csv", "a\n1\n", key(nil), `row 1 (line 2): the key is empty`},
		"computed empty": {"t.csv", "a\n1\n", key(""), `row 1 (line 2): the key is empty`},
		"computed list":  {"t.csv", "a\n1\n", key([]any{"x", nil}), `row 1 (line 2): the key is empty`},
		"no such column": {"t.csv", "a,b\n1,2\n", ByColumns("emial"), `identity: the source has no column "emial"; it has "a", "b"`},
		"twice":          {"t.csv", "a,b\n1,2\n", ByColumns("a", "a"), `the column "a" is given twice`},
		"expression fails": {"t.csv", "a\n1\n", ByKey(func(map[string]any, int64) (any, error) { return nil, errors.New("no such field") }),
			`row 1 (line 2): the key cannot be computed: no such field`},
	}
	for name, c := range cases {
		st := &store.Store{Table: memory.New()}
		_, err := Seal(t.Context(), st, "r", openText(t, c.name, c.text, Options{}), c.id, SealOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if _, err := st.Table.Get(t.Context(), stateKey("r")); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("%s: something was left behind: %v", name, err)
		}
	}
}

// M4: the index has a budget, and says what it needed.
func TestM4KeyIndexBudget(t *testing.T) {
	st := &store.Store{Table: memory.New()}
	const budget = 200_000 // 10,000 entries of 20 bytes
	_, err := Seal(t.Context(), st, "r", openText(t, "t.csv", numberedRows(0, 20_000), Options{}), ByColumns("a"), SealOptions{KeyBudget: budget})
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "the budget is 200000; use key: position") {
		t.Fatalf("got %v", err)
	}
	if _, err := LoadSealed(t.Context(), st, "r"); !errors.Is(err, ErrNotSealed) {
		t.Errorf("got %v", err)
	}
	// The same keys again and again need no room; position needs none at all.
	text := "a\n" + strings.Repeat("1\n2\n3\n", 10_000)
	if _, err := Seal(t.Context(), st, "r", openText(t, "t.csv", text, Options{}), ByColumns("a"), SealOptions{KeyBudget: 2000}); err != nil {
		t.Error(err)
	}
	if _, err := Seal(t.Context(), st, "r2", openText(t, "t.csv", text, Options{}), Position(), SealOptions{KeyBudget: 1}); err != nil {
		t.Error(err)
	}
}

// The index against a map: same answers, and little empty room.
func TestM3KeyIndexAgreesWithAMap(t *testing.T) {
	x := &keyIndex{budget: 1 << 30}
	known := map[[16]byte]int64{}
	state := uint64(1)
	const rows = 200_000
	for row := range int64(rows) {
		state = state*6364136223846793005 + 1442695040888963407
		var d [16]byte
		pick := (state >> 33) % (rows / 2) // about half are duplicates
		binary.LittleEndian.PutUint64(d[:], pick*0x9e3779b97f4a7c15)
		binary.LittleEndian.PutUint64(d[8:], pick*0xd1342543de82ef95)
		first, dup, err := x.add(d, row)
		want, seen := known[d]
		if !seen {
			want, known[d] = row, row
		}
		if err != nil || dup != seen || first != want {
			t.Fatalf("row %d: %d %v %v, want %d %v", row, first, dup, err, want, seen)
		}
	}
	if perKey := float64(x.bytes) / float64(len(known)); x.keys != int64(len(known)) || perKey > 32 {
		t.Errorf("%d keys, %.1f bytes each", x.keys, perKey)
	}
}

func TestM3RowNumbersBeyondTheIndex(t *testing.T) {
	x := &keyIndex{budget: 1 << 20}
	if _, _, err := x.add([16]byte{1}, maxIndexRow+1); !errors.Is(err, ErrBudget) {
		t.Errorf("got %v", err)
	}
	if first, _, err := x.add([16]byte{1}, maxIndexRow); err != nil || first != maxIndexRow {
		t.Errorf("got %v %v", first, err)
	}
	if first, dup, _ := x.add([16]byte{1}, maxIndexRow); !dup || first != maxIndexRow {
		t.Error(fmt.Sprint(first, dup))
	}
}
