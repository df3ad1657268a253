package intake

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
	"sluice/internal/memory"
)

// rowsOf is a source of given rows.
type rowsOf struct {
	columns []string
	rows    [][]any
	at      int
}

func (s *rowsOf) Columns() []string { return s.columns }
func (s *rowsOf) Typed() bool       { return true }
func (s *rowsOf) Next() (Row, error) {
	if s.at == len(s.rows) {
		return Row{}, io.EOF
	}
	s.at++
	return Row{Line: int64(s.at), Values: s.rows[s.at-1]}, nil
}

func TestM2ValuesThatCannotBeCarried(t *testing.T) {
	for name, bad := range map[string]any{"NaN": math.NaN(), "infinity": []any{math.Inf(1)}, "text": "\xff", "type": struct{}{}} {
		st := &store.Store{Table: memory.New()}
		src := &rowsOf{columns: []string{"a", "b"}, rows: [][]any{{"x", "y"}, {"x", bad}}}
		_, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{})
		if !errors.Is(err, value.ErrLossy) || !strings.Contains(err.Error(), `row 2 (line 2): column "b": `) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func noise(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// Pages stay small: few rows, little text, or what compresses badly in halves; one large row is a page by itself,
// and goes to the blob store.
func TestM4PagesAreBounded(t *testing.T) {
	onStores(t, func(t *testing.T, st *store.Store) {
		src := &rowsOf{columns: []string{"a"}}
		want := []string{}
		add := func(s string) { src.rows, want = append(src.rows, []any{s}), append(want, s) }
		for i := range 300 {
			add(noise(3000 + i)) // a megabyte that hardly compresses
		}
		add(noise(600_000)) // over an item
		add("small")
		for range 4 {
			add(strings.Repeat("x", 400_000)) // two to a megabyte
		}
		in := mustSeal(t, st, "r", src, Position())
		pages, err := readSealed(t.Context(), st, "r")
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for n, p := range pages {
			size := 0
			for _, v := range p.Values {
				got = append(got, v[0].(string))
				size += len(v[0].(string))
			}
			it, err := st.Table.Get(t.Context(), pageKey("r", n))
			if err != nil || len(p.Values) > 1 && (size > MaxPagePlain || it.Size() > MaxPageSealed+100) || it.Size() > table.MaxItem {
				t.Errorf("page %d: %d rows, %d bytes, item of %d, %v", n, len(p.Values), size, it.Size(), err)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error("rows differ")
		}
		if in.Pages < 8 || in.Pages > 16 {
			t.Errorf("%d pages", in.Pages)
		}
	})
}

func TestM4RowThatNoPageHolds(t *testing.T) {
	st := &store.Store{Table: memory.New()}
	src := &rowsOf{columns: []string{"a"}, rows: [][]any{{"x"}, {strings.Repeat("x", frame.MaxPlain)}}}
	_, err := Seal(t.Context(), st, "r", src, Position(), SealOptions{})
	if err == nil || !strings.Contains(err.Error(), "row 2 (line 2): the row has 67108869 bytes as JSON; at most") {
		t.Errorf("got %v", err)
	}
}
