package intake

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

func TestH8DamagedPagesAreNamed(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		mustSeal(t, st, "r", openText(t, "t.csv", numberedRows(0, 3500), Options{}), Position())
		mustSeal(t, st, "other", openText(t, "t.csv", numberedRows(9, 3500), Options{}), Position())
		good, err := st.Table.Get(t.Context(), pageKey("r", 2))
		if err != nil {
			t.Fatal(err)
		}
		foreign, _ := st.Table.Get(t.Context(), pageKey("other", 2))
		flipped := bytes.Clone(good.Data)
		flipped[len(flipped)/2] ^= 1
		for name, data := range map[string][]byte{"is missing": nil, "differs": foreign.Data, "is damaged": flipped} {
			if data == nil {
				err = st.Table.Delete(t.Context(), good.Key, table.Always())
			} else {
				err = st.Table.Put(t.Context(), table.Item{Key: good.Key, Version: 1, Data: data}, table.Always())
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err := readSealed(t.Context(), st, "r")
			if page := new(PageError); !errors.As(err, &page) || page.Page != 2 || !strings.Contains(err.Error(), "page 2 of the sealed input "+name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestH8DamagedManifest(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		in := mustSeal(t, st, "r", openText(t, "t.csv", numberedRows(0, 3500), Options{}), Position())
		mustSeal(t, st, "other", openText(t, "t.csv", numberedRows(9, 3500), Options{}), Position())
		foreign, _ := st.Table.Get(t.Context(), manifestKey("other", 0))
		short := table.Item{Data: append([]byte{'I'}, frame.Seal([]byte(`[{"first":0,"rows":3500,"digest":"x"}]`))...)}
		for name, data := range map[string][]byte{"differs": foreign.Data, "lists 1 pages": short.Data, "is damaged": []byte("Ix"), "is missing": nil} {
			err := st.Table.Put(t.Context(), table.Item{Key: manifestKey("r", 0), Version: 1, Data: data}, table.Always())
			if data == nil {
				err = st.Table.Delete(t.Context(), manifestKey("r", 0), table.Always())
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = Manifest(t.Context(), st, "r", in)
			if page := new(PageError); !errors.As(err, &page) || page.Page != -1 || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// H7: what the source becomes after sealing changes nothing.
func TestH7SealedInputDecides(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		source := []byte("a\n1\n2\n")
		src, err := Open("t.csv", bytes.NewReader(source), Options{})
		if err != nil {
			t.Fatal(err)
		}
		mustSeal(t, st, "r", src, Position())
		copy(source, "a\n8\n9\n")
		rows, _ := allRows(t, st, "r")
		if d := cmp.Diff([]map[string]any{{"a": "1"}, {"a": "2"}}, rows); d != "" {
			t.Error(d)
		}
	})
}

func TestManifestRange(t *testing.T) {
	st := &store.Store{Table: memory.New()}
	refs := make([]PageRef, 2*refsPer+10)
	version, _, err := claim(t.Context(), st, "r", "")
	if err != nil {
		t.Fatal(err)
	}
	s := newStager(t.Context(), st, "r", version)
	for i := range refs {
		refs[i] = PageRef{First: int64(i), Rows: 1, Digest: fmt.Sprint(i)}
		if err := s.list(refs[i]); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.finish(Sealed{Rows: int64(len(refs))})
	if err != nil {
		t.Fatal(err)
	}
	out.Pages = len(refs)
	for _, r := range [][2]int{{0, 0}, {0, 1}, {0, 2000}, {1999, 2001}, {2000, 4000}, {4005, 4010}, {0, 4010}} {
		got, err := ManifestRange(t.Context(), st, "r", out, r[0], r[1])
		if err != nil || len(got) != r[1]-r[0] || len(got) > 0 && cmp.Diff(refs[r[0]:r[1]], got) != "" {
			t.Errorf("%v: %d entries, %v", r, len(got), err)
		}
	}
	if _, err := Manifest(t.Context(), st, "r", out); err != nil {
		t.Error(err)
	}
	for _, r := range [][2]int{{-1, 0}, {2, 1}, {0, 4011}} {
		if _, err := ManifestRange(t.Context(), st, "r", out, r[0], r[1]); err == nil {
			t.Errorf("%v is no range", r)
		}
	}
}
