package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

func mustSeal(t *testing.T, st *store.Store, run string, src Source, id Identity) Sealed {
	t.Helper()
	in, err := Seal(t.Context(), st, run, src, id, SealOptions{})
	if err != nil {
		t.Fatalf("Seal: %v", err)
	}
	return in
}

// readSealed reads the whole sealed input.
func readSealed(ctx context.Context, st *store.Store, run string) (pages []Page, err error) {
	in, err := LoadSealed(ctx, st, run)
	if err != nil {
		return nil, err
	}
	refs, err := Manifest(ctx, st, run, in)
	if err != nil {
		return nil, err
	}
	for n, ref := range refs {
		p, err := ReadPage(ctx, st, run, ref, n)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func allRows(t *testing.T, st *store.Store, run string) (rows []map[string]any, index []int64) {
	t.Helper()
	in, err := LoadSealed(t.Context(), st, run)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := readSealed(t.Context(), st, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.First != int64(len(rows)) {
			t.Fatalf("page %d begins at %d, want %d", p.Number, p.First, len(rows))
		}
		for i := range p.Values {
			rows, index = append(rows, p.Row(i, in.Columns)), append(index, p.Index[i])
		}
	}
	return rows, index
}

func TestM1SealedInputIsReadBackWhole(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		text := &strings.Builder{}
		text.WriteString("id,note\n")
		for i := range 2500 {
			fmt.Fprintf(text, "%d,\"ö \"\"%d\"\"\n😀\t\"\n", i, i)
		}
		if _, err := LoadSealed(t.Context(), st, "r"); !errors.Is(err, ErrNotSealed) {
			t.Fatalf("before: %v", err)
		}
		in := mustSeal(t, st, "r", openText(t, "t.csv", text.String(), Options{}), Position())
		if in.Total != 2500 || in.Rows != 2500 || in.Pages != 3 || in.Duplicates != 0 || in.Typed || !in.HasPosition || len(in.Digest) != 64 {
			t.Errorf("%+v", in)
		}
		loaded, err := LoadSealed(t.Context(), st, "r")
		if err != nil || cmp.Diff(in, loaded) != "" {
			t.Errorf("%v %s", err, cmp.Diff(in, loaded))
		}
		rows, index := allRows(t, st, "r")
		for i, row := range rows {
			want := map[string]any{"id": fmt.Sprint(i), "note": fmt.Sprintf("ö \"%d\"\n😀\t", i)}
			if index[i] != int64(i) || cmp.Diff(want, row) != "" {
				t.Fatalf("row %d: index %d %s", i, index[i], cmp.Diff(want, row))
			}
		}
	})
}

func TestM1ATableWithoutRows(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		in := mustSeal(t, st, "r", openText(t, "t.csv", "a,b\n", Options{}), ByColumns("b"))
		if in.Total != 0 || in.Pages != 0 || cmp.Diff([]string{"a", "b"}, in.Columns) != "" {
			t.Errorf("%+v", in)
		}
		if rows, _ := allRows(t, st, "r"); len(rows) != 0 {
			t.Error(rows)
		}
		other := mustSeal(t, st, "r2", openText(t, "t.csv", "a,c\n", Options{}), Position())
		if other.Digest == in.Digest {
			t.Error("other columns, same digest")
		}
	})
}

// A page knows the columns met so far; a row is filled up with nulls.
func TestM1LearnedColumnsAreFilledUp(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		text := strings.Repeat(`{"a":1}`+"\n", MaxPageRows+1) + `{"z":[1.0,{"k":null}]}`
		in := mustSeal(t, st, "r", openText(t, "t.jsonl", text, Options{}), Position())
		if !in.Typed || cmp.Diff([]string{"a", "z"}, in.Columns) != "" || in.Pages != 2 {
			t.Errorf("%+v", in)
		}
		rows, _ := allRows(t, st, "r")
		if d := cmp.Diff(map[string]any{"a": int64(1), "z": nil}, rows[0]); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]any{"a": nil, "z": []any{1.0, map[string]any{"k": nil}}}, rows[MaxPageRows+1]); d != "" {
			t.Error(d)
		}
	})
}

func TestM1SealedIsNeverOverwritten(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		in := mustSeal(t, st, "r", openText(t, "t.csv", "a\n1\n", Options{}), Position())
		again, err := Seal(t.Context(), st, "r", openText(t, "t.csv", "a\n2\n", Options{}), Position(), SealOptions{})
		if !errors.Is(err, ErrSealed) || again.Digest != in.Digest {
			t.Errorf("%v %+v", err, again)
		}
		if err := Discard(t.Context(), st, "r"); !errors.Is(err, ErrSealed) {
			t.Errorf("Discard: %v", err)
		}
		if rows, _ := allRows(t, st, "r"); rows[0]["a"] != "1" {
			t.Error(rows)
		}
	})
}

// crashing is a source that ends the context after some rows, as a killed process would.
type crashing struct {
	Source
	left int
	kill context.CancelFunc
}

func (c *crashing) Next() (Row, error) {
	if c.left--; c.left < 0 {
		c.kill()
	}
	return c.Source.Next()
}

func crashWhileStaging(t *testing.T, st *store.Store, text, fingerprint string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	src := &crashing{openText(t, "t.csv", text, Options{}), 5500, kill}
	if _, err := Seal(ctx, st, "r", src, ByColumns("a"), SealOptions{Fingerprint: fingerprint}); !errors.Is(err, context.Canceled) {
		t.Fatalf("the crash: %v", err)
	}
	if _, err := LoadSealed(t.Context(), st, "r"); !errors.Is(err, ErrNotSealed) {
		t.Fatalf("staging is readable: %v", err)
	}
}

func numberedRows(from, n int) string {
	b := []byte("a\n")
	for i := range n {
		b = fmt.Appendf(b, "%d\n", from+i)
	}
	return string(b)
}

func TestM1StagingStartsAgainAfterACrash(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		crashWhileStaging(t, st, numberedRows(0, 6000), "one")
		// What the crash left behind is longer than the input now; nothing of it may remain.
		leftover := table.Item{Key: pageKey("r", 4711), Version: 1, Data: []byte("Ix")}
		if err := st.Table.Put(t.Context(), leftover, table.Always()); err != nil {
			t.Fatal(err)
		}
		in, err := Seal(t.Context(), st, "r", openText(t, "t.csv", numberedRows(0, 6000), Options{Limit: 1500}), ByColumns("a"), SealOptions{Fingerprint: "one"})
		if err != nil {
			t.Fatal(err)
		}
		if rows, _ := allRows(t, st, "r"); len(rows) != 1500 || in.Pages != 2 {
			t.Errorf("%d rows, %+v", len(rows), in)
		}
		n := 0
		for it, err := range st.Table.Query(t.Context(), table.Query{Part: part("r")}) {
			if n++; err != nil || it.Sort == leftover.Sort {
				t.Errorf("%v %v", it.Key, err)
			}
		}
		if n != 4 { // two pages, a manifest, the state
			t.Errorf("%d items remain", n)
		}
	})
}

func TestM1SourceThatChangedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		crashWhileStaging(t, st, numberedRows(0, 6000), "one")
		src := openText(t, "t.csv", numberedRows(9, 10), Options{})
		if _, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{Fingerprint: "two"}); !errors.Is(err, ErrSourceChanged) {
			t.Fatalf("got %v", err)
		}
		// An attempt without a fingerprint does not make the next one forget.
		crashWhileStaging(t, st, numberedRows(0, 6000), "")
		if _, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{Fingerprint: "two"}); !errors.Is(err, ErrSourceChanged) {
			t.Fatalf("got %v", err)
		}
		if err := Discard(t.Context(), st, "r"); err != nil {
			t.Fatal(err)
		}
		if _, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{Fingerprint: "two"}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestM1SourceWrittenToWhileRead(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		opts := SealOptions{Fingerprint: "one", Recheck: func() (string, error) { return "two", nil }}
		_, err := Seal(t.Context(), st, "r", openText(t, "t.csv", "a\n1\n", Options{}), Position(), opts)
		if !errors.Is(err, ErrSourceChanged) {
			t.Fatalf("got %v", err)
		}
		opts.Fingerprint = "two" // complete now
		if _, err := Seal(t.Context(), st, "r", openText(t, "t.csv", "a\n1\n", Options{}), Position(), opts); err != nil {
			t.Error(err)
		}
	})
}

// A refused source leaves nothing behind, and its correction can be sealed under the same run.
func TestM1RefusedSourceCanBeCorrected(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		text := numberedRows(0, 3000)
		_, err := Seal(t.Context(), st, "r", openText(t, "t.csv", text+"1,2\n", Options{}), Position(), SealOptions{Fingerprint: "one"})
		if pos := new(PosError); !errors.As(err, &pos) || pos.Line != 3002 {
			t.Fatalf("got %v", err)
		}
		for it, err := range st.Table.Query(t.Context(), table.Query{Part: part("r")}) {
			t.Errorf("left behind: %v %v", it.Key, err)
		}
		if _, err := Seal(t.Context(), st, "r", openText(t, "t.csv", text, Options{}), Position(), SealOptions{Fingerprint: "two"}); err != nil {
			t.Error(err)
		}
	})
}

// interleaved seals another input under the same run when it has given a row.
type interleaved struct {
	Source
	meanwhile func()
	once      bool
}

func (s *interleaved) Next() (Row, error) {
	if !s.once {
		s.once = true
		s.meanwhile()
	}
	return s.Source.Next()
}

func TestM1OneOfTwoSealersWins(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		for _, late := range []int{0, 10, 3000} { // the late one has none, less, or more than what is sealed
			run := fmt.Sprint("r", late)
			src := &interleaved{Source: openText(t, "t.csv", numberedRows(0, late), Options{}), meanwhile: func() {
				mustSeal(t, st, run, openText(t, "t.csv", numberedRows(5000, 2000), Options{}), Position())
			}}
			if _, err := Seal(t.Context(), st, run, src, Position(), SealOptions{}); !errors.Is(err, table.ErrConflict) {
				t.Errorf("the late one: %v", err)
			}
			if rows, _ := allRows(t, st, run); len(rows) != 2000 || rows[0]["a"] != "5000" {
				t.Errorf("%d rows, first %v", len(rows), rows[0])
			}
		}
	})
}

// A sealer that slept through claims, a refusal and a deletion does not take a new claim for its own.
func TestM1OvertakenSealerStaysOut(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		src := &interleaved{Source: openText(t, "t.csv", numberedRows(0, 10), Options{}), meanwhile: func() {
			if err := Discard(t.Context(), st, "r"); err != nil {
				t.Error(err)
			}
			crashWhileStaging(t, st, numberedRows(0, 6000), "")
		}}
		if _, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{}); !errors.Is(err, table.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if _, err := LoadSealed(t.Context(), st, "r"); !errors.Is(err, ErrNotSealed) {
			t.Errorf("got %v", err)
		}
	})
}

// failing is a table whose nth write fails, before or after it is made.
type failing struct {
	table.Table
	writes    atomic.Int64
	at        int64
	persisted bool
}

var errStore = errors.New("no answer from the store")

func (f *failing) Put(ctx context.Context, it table.Item, cond table.If) error {
	return f.write(func() error { return f.Table.Put(ctx, it, cond) })
}

func (f *failing) PutMany(ctx context.Context, items []table.Item) error {
	return f.write(func() error { return f.Table.PutMany(ctx, items) })
}

func (f *failing) write(do func() error) error {
	if f.writes.Add(1) != f.at {
		return do()
	}
	if f.persisted {
		_ = do()
	}
	return errStore
}

// Whichever write fails, and whether or not it was made, repeating Seal gives the input.
func TestM1AnyFailedWriteIsSurvived(t *testing.T) {
	text := numberedRows(0, 1500) + numberedRows(0, 1500)[2:]
	onStores(t, func(t *testing.T, st *store.Store) {
		want := mustSeal(t, st, "whole", openText(t, "t.csv", text, Options{}), ByColumns("a"))
		for _, persisted := range []bool{false, true} {
			for at := int64(1); ; at++ {
				f := &failing{Table: st.Table, at: at, persisted: persisted}
				run := fmt.Sprintf("r-%v-%d", persisted, at)
				broken := &store.Store{Table: f, Blobs: st.Blobs}
				seal := func(st *store.Store) (Sealed, error) {
					return Seal(t.Context(), st, run, openText(t, "t.csv", text, Options{}), ByColumns("a"), SealOptions{})
				}
				got, err := seal(broken)
				if f.writes.Load() < at {
					if at < 5 {
						t.Fatalf("only %d writes", f.writes.Load())
					}
					break
				}
				if err != nil {
					if !errors.Is(err, errStore) {
						t.Fatalf("%s: %v", run, err)
					}
					if got, err = seal(st); err != nil {
						t.Fatalf("%s, again: %v", run, err)
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", run, d)
				}
				if rows, _ := allRows(t, st, run); len(rows) != 1500 {
					t.Errorf("%s: %d rows", run, len(rows))
				}
			}
		}
	})
}
