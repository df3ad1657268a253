package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

// wholeOf reads an input that need not be what the state says: one that was extended.
func wholeOf(t *testing.T, st *store.Store, run string, in Sealed) (rows []string, index []int64) {
	t.Helper()
	refs, err := Manifest(t.Context(), st, run, in)
	if err != nil {
		t.Fatal(err)
	}
	for n, ref := range refs {
		page, err := ReadPage(t.Context(), st, run, ref, n)
		if err != nil {
			t.Fatal(err)
		}
		if page.Number != n || page.First != int64(len(rows)) {
			t.Fatalf("page %d is number %d and begins at %d, want %d", n, page.Number, page.First, len(rows))
		}
		for i := range page.Values {
			row := page.Row(i, in.Columns)
			var cells []string
			for _, c := range in.Columns {
				cells = append(cells, fmt.Sprint(row[c]))
			}
			rows, index = append(rows, strings.Join(cells, ",")), append(index, page.Index[i])
		}
	}
	return rows, index
}

// A table with a key is extended, twice, also by rows that it has: they are duplicates, whichever part has them. Columns
// may stand in another order. What was sealed is not written again.
func TestX4M3ATableIsExtendedByItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		id := ByColumns("k")
		in := mustSeal(t, st, "r", openText(t, "t.csv", "k,v\na,1\nb,2\na,3\n", Options{}), id)
		before := keysAndData(t, st, "run/r/in")
		for _, step := range []struct {
			text  string
			told  Extension
			rows  string
			index []int64
		}{
			{"v,k\n4,b\n5,c\n6,c\n7,d\n", Extension{Rows: 2, Duplicates: 2}, "a,1 b,2 c,5 d,7", []int64{0, 1, 4, 6}},
			{"k,v\na,8\nc,9\ne,10\n", Extension{Rows: 1, Duplicates: 2}, "a,1 b,2 c,5 d,7 e,10", []int64{0, 1, 4, 6, 9}},
			{"k,v\na,8\ne,9\n", Extension{Duplicates: 2}, "a,1 b,2 c,5 d,7 e,10", []int64{0, 1, 4, 6, 9}},
		} {
			var told Extension
			var err error
			in, told, err = Extend(t.Context(), st, "r", in, openText(t, "t.csv", step.text, Options{}), id, SealOptions{})
			if err != nil || told != step.told {
				t.Fatalf("%+v, %v", told, err)
			}
			rows, index := wholeOf(t, st, "r", in)
			if got := strings.Join(rows, " "); got != step.rows || cmp.Diff(step.index, index) != "" || in.Rows != int64(len(rows)) || in.Rows != in.Total-in.Duplicates {
				t.Errorf("%s %v, %+v", got, index, in)
			}
		}
		if len(in.Parts) != 3 || in.Total != 10 || in.Pages != 3 {
			t.Errorf("%+v", in)
		}
		if d := cmp.Diff(before, keysAndData(t, st, "run/r/in")); d != "" {
			t.Error(d)
		}
		dups := []Duplicate{{Row: 3, Line: 4, First: 1}, {Row: 4, Line: 2, First: 2}, {Row: 6, Line: 4, First: 5}, {Row: 8, Line: 2, First: 1}, {Row: 9, Line: 3, First: 5}}
		if d := cmp.Diff(dups, duplicatesOf(t, st, "r", in)); d != "" || in.Duplicates != 5 {
			t.Errorf("%d duplicates, listed: %s", in.Duplicates, d)
		}
		if left := keysAndData(t, st, "run/r/x3/in"); len(left) > 0 {
			t.Errorf("a source without new rows left %d items", len(left))
		}
	})
}

// Where the key is the position, a table is extended by itself with more rows.
func TestX4ATableIsExtendedByItsPosition(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		for name, text := range map[string][3]string{
			"csv":   {"a\n1\n2\n", "a\n1\n2\n3\n4\n", "a\n1\n2\n3\n4\n5\n"},
			"jsonl": {"{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2,\"b\":null}\n{\"b\":7,\"a\":3}\n{\"a\":4}\n", "{\"a\":1}\n{\"a\":2}\n{\"a\":3,\"b\":7}\n{\"a\":4}\n{\"a\":5}\n"},
		} {
			options := Options{Format: name}
			in := mustSeal(t, st, name, openText(t, "t."+name, text[0], options), Position())
			for n, add := range []int64{2, 1} {
				var told Extension
				var err error
				if in, told, err = Extend(t.Context(), st, name, in, openText(t, "t."+name, text[n+1], options), Position(), SealOptions{}); err != nil || told != (Extension{Rows: add}) {
					t.Fatalf("%s: %+v, %v", name, told, err)
				}
			}
			rows, index := wholeOf(t, st, name, in)
			if len(rows) != 5 || index[4] != 4 || in.Total != 5 || in.Duplicates != 0 || !strings.HasPrefix(rows[2], "3") {
				t.Errorf("%s: %v %v %+v", name, rows, index, in)
			}
			for wrong, says := range map[string]string{text[0]: "has 2 rows, the run has 5 already", strings.Replace(text[2], "3", "9", 1): "row 3 "} {
				if _, _, err := Extend(t.Context(), st, name, in, openText(t, "t."+name, wrong, options), Position(), SealOptions{}); err == nil || !Refused(err) || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestX4ExtendRefusesAnotherTable(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		in := mustSeal(t, st, "r", openText(t, "t.csv", "k,v\na,1\n", Options{}), ByColumns("k"))
		for text, says := range map[string]string{
			"k\nb\n": `no column "v"`, "k,v,w\nb,1,2\n": `has no column "w"`, "k,v\n,1\n": "row 2 (line 2)",
		} {
			if _, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", text, Options{}), ByColumns("k"), SealOptions{}); err == nil || !Refused(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if _, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.jsonl", `{"k":"b"}`, Options{}), ByColumns("k"), SealOptions{}); err == nil || !strings.Contains(err.Error(), "types") {
			t.Error(err)
		}
		if _, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", "k,v\nb,1\n", Options{}), ByColumns("k"), SealOptions{KeyBudget: 10}); !errors.Is(err, ErrBudget) {
			t.Error(err)
		}
		if left := keysAndData(t, st, "run/r/x1/in"); len(left) > 0 {
			t.Errorf("a refused source left %d items", len(left))
		}
	})
}

// The store dies at every write of an extension. The input is as it was, and extending it again has the same end, also
// with another source.
func TestX4CrashAtEveryWriteOfAnExtension(t *testing.T) {
	for n := 1; ; n++ {
		f := tabletest.NewFaulty(memory.New())
		st := &store.Store{Table: f, Blobs: memory.NewBlobs()}
		in := mustSeal(t, st, "r", openText(t, "t.csv", "k,v\na,1\nb,2\n", Options{}), ByColumns("k"))
		f.CrashAt(n, []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed}[n%2])
		_, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", "k,v\nb,2\nc,3\n", Options{}), ByColumns("k"), SealOptions{})
		crashed := f.Crashed()
		if crashed != (err != nil) {
			t.Fatalf("write %d: crashed %v, %v", n, crashed, err)
		}
		f.Heal()
		if rows, _ := wholeOf(t, st, "r", in); len(rows) != 2 {
			t.Errorf("write %d: %v", n, rows)
		}
		more, told, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", "k,v\nd,4\n", Options{}), ByColumns("k"), SealOptions{})
		if err != nil || told.Rows != 1 {
			t.Fatalf("write %d: %+v, %v", n, told, err)
		}
		if rows, _ := wholeOf(t, st, "r", more); strings.Join(rows, " ") != "a,1 b,2 d,4" {
			t.Errorf("write %d: %v", n, rows)
		}
		if !crashed {
			return
		}
	}
}

// An extension with a name keeps what it has sealed, whoever comes after: who has made it the run's meanwhile does not lose it.
func TestX4AnExtensionDoneTwiceIsOnePart(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		id := ByColumns("k")
		in := mustSeal(t, st, "r", openText(t, "t.csv", "k,v\na,1\n", Options{}), id)
		extend := func(name, text string) Sealed {
			t.Helper()
			more, told, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", text, Options{}), id, SealOptions{Name: name})
			if err != nil || told != (Extension{Rows: 1, Duplicates: 1}) {
				t.Fatalf("%+v, %v", told, err)
			}
			return more
		}
		first := extend("1", "k,v\na,1\nb,2\n")
		before := keysAndData(t, st, "run/r/x1-1/in")
		second, other := extend("1", "k,v\na,1\nb,2\n"), extend("2", "k,v\na,1\nc,3\n")
		_ = extend("", "k,v\na,1\nd,4\n")
		if second.Digest != first.Digest || other.Digest == first.Digest || len(before) == 0 || cmp.Diff(before, keysAndData(t, st, "run/r/x1-1/in")) != "" {
			t.Errorf("sealed again: %+v, then %+v, another %+v", first, second, other)
		}
		if rows, _ := wholeOf(t, st, "r", first); strings.Join(rows, " ") != "a,1 b,2" {
			t.Errorf("%v", rows)
		}
		if err := Forget(t.Context(), st, "r", in, "2"); err != nil || len(keysAndData(t, st, "run/r/x1-2/in")) > 0 {
			t.Errorf("not forgotten: %v", err)
		}
	})
}

// Every part is told of in the run's record, which must stay an item.
func TestM4AnInputHasABoundOfParts(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	in := mustSeal(t, st, "r", openText(t, "t.csv", "k\na\n", Options{}), ByColumns("k"))
	for len(in.AllParts()) < MaxParts {
		in = in.plus(in.alone(in.AllParts()[0]), "x")
	}
	_, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", "k\nb\n", Options{}), ByColumns("k"), SealOptions{})
	if !errors.Is(err, ErrParts) || !Refused(err) || !strings.Contains(err.Error(), "extended 499 times") {
		t.Error(err)
	}
}

// A page of an extension that is missing, or another one, is noticed as any other.
func TestH8PagesOfAnExtensionAreChecked(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		in := mustSeal(t, st, "r", openText(t, "t.csv", "k\na\n", Options{}), ByColumns("k"))
		in, _, err := Extend(t.Context(), st, "r", in, openText(t, "t.csv", "k\nb\n", Options{}), ByColumns("k"), SealOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Table.Delete(t.Context(), table.Key{Part: "run/r/x1/in", Sort: "p/00000000"}, table.Always()); err != nil {
			t.Fatal(err)
		}
		refs, err := Manifest(t.Context(), st, "r", in)
		if err != nil {
			t.Fatal(err)
		}
		var page *PageError
		if _, err := ReadPage(t.Context(), st, "r", refs[1], 1); !errors.As(err, &page) || page.Page != 1 {
			t.Error(err)
		}
		in.Parts[1].Digest = "other"
		if _, err := Manifest(t.Context(), st, "r", in); !errors.As(err, &page) {
			t.Error(err)
		}
	})
}

func keysAndData(t *testing.T, st *store.Store, part string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for item, err := range st.Table.Query(t.Context(), table.Query{Part: part}) {
		if err != nil {
			t.Fatal(err)
		}
		all[item.Sort] = string(item.Data)
	}
	return all
}
