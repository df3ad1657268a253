package intake

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/core/value"
)

// anyValue generates the value model.
func anyValue(depth int) *rapid.Generator[any] {
	options := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Float64(), func(v float64) any {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return 0.5
			}
			return v
		}),
		rapid.Map(rapid.String(), func(v string) any { return v }),
	}
	if depth > 0 {
		options = append(options,
			rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(v []any) any { return append([]any{}, v...) }),
			rapid.Map(rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 4), func(v map[string]any) any { return v }))
	}
	return rapid.OneOf(options...)
}

// Whatever values, whatever positions, and wherever the page is cut: the rows come back as they were.
func TestM2PagesCarryEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfNDistinct(rapid.String(), 0, 4, func(s string) string { return s }).Draw(t, "columns")
		d := draft{columns: columns}
		d.reset(rapid.Int64Range(0, 1<<40).Draw(t, "first"))
		var rows [][]any
		at := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			row := append([]any{}, rapid.SliceOfN(anyValue(2), 0, len(columns)).Draw(t, "row")...)
			text, err := appendRow(nil, columns, row)
			if err != nil {
				t.Fatal(err)
			}
			at += rapid.Int64Range(1, 2).Draw(t, "gap")
			d.add(text, at)
			rows = append(rows, row)
		}
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "i")
		j := rapid.IntRange(i+1, len(rows)).Draw(t, "j")
		plain, err := d.payload(nil, i, j)
		if err != nil {
			t.Fatal(err)
		}
		page, err := decodePage(plain, j-i)
		if err != nil {
			t.Fatalf("%s: %v", plain, err)
		}
		if page.First != d.first+int64(i) || cmp.Diff(d.index[i:j], page.Index) != "" {
			t.Fatalf("first %d, index %v", page.First, page.Index)
		}
		if diff := cmp.Diff(rows[i:j], page.Values, cmp.Comparer(sameFloat)); diff != "" {
			t.Fatal(diff)
		}
		if len(columns) > 0 && cmp.Diff(columns, page.Columns) != "" {
			t.Fatal(page.Columns)
		}
	})
}

// The stored form is a promise to later versions.
func TestPagePayloadIsStable(t *testing.T) {
	d := draft{columns: []string{"a", "b"}}
	d.reset(10)
	for i, row := range [][]any{{"x", int64(1)}, {nil}, {}} {
		text, _ := appendRow(nil, d.columns, row)
		d.add(text, []int64{12, 13, 20}[i])
	}
	for want, cut := range map[string][2]int{
		`{"v":1,"first":10,"cols":["a","b"],"index":[12,13,20],"rows":[["x",1],[null],[]]}`: {0, 3},
		`{"v":1,"first":10,"cols":["a","b"],"base":12,"rows":[["x",1],[null]]}`:             {0, 2},
		`{"v":1,"first":12,"cols":["a","b"],"base":20,"rows":[[]]}`:                         {2, 3},
	} {
		got, err := d.payload(nil, cut[0], cut[1])
		if err != nil || string(got) != want || !json.Valid(got) {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
	}
}

func TestPageOfALaterVersion(t *testing.T) {
	page, err := decodePage([]byte(`{"v":1,"new":{"x":[1]},"first":3,"cols":["a"],"base":7,"rows":[["x"]]}`), 1)
	if err != nil || page.First != 3 || page.Index[0] != 7 {
		t.Errorf("an unknown field is tolerated: %+v %v", page, err)
	}
	for _, bad := range []string{
		`{"v":2,"first":0,"cols":["a"],"base":0,"rows":[["x"]]}`, `{"first":0,"cols":["a"],"base":0,"rows":[["x"]]}`,
		`{"v":1,"first":0,"cols":["a"],"rows":[["x"]]}`, `{"v":1,"first":0,"cols":["a"],"index":[1,2],"rows":[["x"]]}`,
		`{"v":1,"first":0,"cols":["a"],"base":0,"rows":[["x","y"]]}`, `{"v":1,"first":0.5,"cols":["a"],"base":0,"rows":[]}`,
		`{"v":1,"first":0,"cols":[1],"base":0,"rows":[]}`, `{"v":1,"first":0,"cols":["a"],"base":0,"rows":[["x"]`, "\xff", ``,
	} {
		if page, err := decodePage([]byte(bad), 1); err == nil {
			t.Errorf("%s: read as %+v", bad, page)
		}
	}
}

// FuzzPage: no payload panics, and one that is read is JSON with the same rows.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"v":1,"first":10,"cols":["a","b"],"index":[12,13,20],"rows":[["x",1],[null],[]]}`))
	f.Add([]byte(`{"v":1,"first":0,"cols":["a"],"base":0,"rows":[["\u00e9\ud83d\ude00",-0,1e5,{"a":[true,false]}]]}`))
	f.Fuzz(func(t *testing.T, plain []byte) {
		page, err := decodePage(plain, 3)
		if err != nil {
			return
		}
		v, err := value.Decode(plain)
		if err != nil {
			t.Fatalf("%q is read, and is not JSON: %v", plain, err)
		}
		rows, ok := v.(map[string]any)["rows"].([]any)
		if !ok && len(page.Values) == 0 {
			return
		}
		for i := range rows {
			if d := cmp.Diff(rows[i], any(page.Values[i]), cmp.Comparer(sameFloat)); d != "" {
				t.Fatalf("%q, row %d: %s", plain, i, d)
			}
		}
	})
}
