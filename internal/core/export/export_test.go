package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/core/export"
	"sluice/internal/core/intake"
	"sluice/internal/core/value"
)

func write(t interface{ Fatal(...any) }, format string, columns []string, rows ...[]any) string {
	var b bytes.Buffer
	w, err := export.New(&b, format, columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSVCells(t *testing.T) {
	cases := []struct {
		v    any
		want string
	}{
		{nil, ``}, {"", ``}, {"plain", `plain`}, {"Zoë 😀", `Zoë 😀`}, {true, `true`}, {false, `false`},
		{int64(-9007199254740993), `-9007199254740993`}, {1.5, `1.5`}, {2.0, `2.0`}, {1e300, `1e+300`},
		{"a,b", `"a,b"`}, {"a;b", `"a;b"`}, {"a\tb", "\"a\tb\""}, {`say "hi"`, `"say ""hi"""`}, {`"`, `""""`},
		{"a\nb", "\"a\nb\""}, {"a\r\nb", "\"a\r\nb\""}, {"\r", "\"\r\""}, {" a", `" a"`}, {"a ", `"a "`}, {"\u00a0a", "\"\u00a0a\""},
		{"\uFEFFa", "\"\uFEFFa\""}, {"=1+1", `=1+1`}, {"-1", `-1`}, {"@x", `@x`}, // never altered
		{[]any{"a", int64(1), nil}, `"[""a"",1,null]"`}, {[]any{}, `[]`}, {map[string]any{"b": 1.0, "a": "x"}, `"{""a"":""x"",""b"":1.0}"`},
	}
	for _, c := range cases {
		if got := write(t, export.CSV, []string{"h", "i"}, []any{c.v, "x"}); got != "h,i\n"+c.want+",x\n" {
			t.Errorf("%#v: %q, want %q", c.v, got, c.want)
		}
	}
}

func TestCSVOfOneEmptyCell(t *testing.T) {
	if got := write(t, export.CSV, []string{"a"}, []any{""}, []any{nil}, []any{"x"}); got != "a\n\"\"\n\"\"\nx\n" {
		t.Errorf("%q", got)
	}
}

func TestJSONL(t *testing.T) {
	got := write(t, export.JSONL, []string{"z", `q"`, "a"}, []any{"x\n", nil, int64(1)}, []any{[]any{2.0}, map[string]any{"k": true}, "ü"})
	want := `{"z":"x\n","q\"":null,"a":1}` + "\n" + `{"z":[2.0],"q\"":{"k":true},"a":"ü"}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := write(t, export.JSONL, nil, []any{}); got != "{}\n" {
		t.Errorf("%q", got)
	}
}

func TestRefusedRecordsLeaveNoTrace(t *testing.T) {
	for _, format := range []string{export.CSV, export.JSONL} {
		var b bytes.Buffer
		w, err := export.New(&b, format, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		head := b.String()
		for _, bad := range [][]any{{"x"}, {"x", "y", "z"}, nil} {
			if err := w.Write(bad); err == nil {
				t.Errorf("%s: %v was written", format, bad)
			}
		}
		for _, bad := range []any{"\xff", math.NaN(), []any{"\xff"}, make(chan int)} {
			if err := w.Write([]any{"x", bad}); !errors.Is(err, value.ErrLossy) || !strings.Contains(err.Error(), `column "b"`) {
				t.Errorf("%s: %v: %v", format, bad, err)
			}
		}
		if _ = w.Flush(); b.String() != head {
			t.Errorf("%s: %q", format, b.String())
		}
	}
}

func TestRefusedWriters(t *testing.T) {
	for _, c := range []struct {
		format  string
		columns []string
	}{{"xlsx", []string{"a"}}, {export.CSV, nil}, {export.CSV, []string{"a", "a"}}, {export.JSONL, []string{"\xff"}}, {export.CSV, []string{"\xff"}}} {
		if _, err := export.New(io.Discard, c.format, c.columns); err == nil {
			t.Errorf("%+v", c)
		}
	}
	for name, want := range map[string]string{"-": "csv", "a.CSV": "csv", "x/a.jsonl": "jsonl", "a.ndjson": "jsonl", "a.xlsx": "", "a": ""} {
		if got, err := export.FormatOf(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// readAll reads an export with the reader of the inputs.
func readAll(t *rapid.T, name, text string) (columns []string, rows [][]any) {
	src, err := intake.Open(name, strings.NewReader(text), intake.Options{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for {
		row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return src.Columns(), rows
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		rows = append(rows, row.Values)
	}
}

// cells has what breaks CSV readers more often than chance would. NUL is refused by intake.
var cells = rapid.OneOf(
	rapid.StringOf(rapid.SampledFrom([]rune("ab \",;\t\r\n'\\=\u00a0\uFEFFé😀"))),
	rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
)

var headers = rapid.SliceOfNDistinct(rapid.Map(cells, func(s string) string { return "h" + s }), 1, 5, func(s string) string { return s })

// CSV -> rows -> CSV: what intake reads of an export is what was exported, and exporting it again gives the same
// bytes; encoding/csv reads the same cells, except for its treatment of CRLF.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := headers.Draw(t, "columns")
		var rows [][]any
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = cells.Draw(t, "cell")
			}
			rows = append(rows, row)
		}
		text := write(t, export.CSV, columns, rows...)
		gotColumns, gotRows := readAll(t, "t.csv", text)
		if d := cmp.Diff(columns, gotColumns) + cmp.Diff(rows, gotRows); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
		if again := write(t, export.CSV, gotColumns, gotRows...); again != text {
			t.Fatalf("%q became %q", text, again)
		}
		other, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(other) != len(rows)+1 {
			t.Fatalf("%q: encoding/csv has %d records, %v", text, len(other), err)
		}
		for i, row := range rows {
			for j, v := range row {
				if want := strings.ReplaceAll(v.(string), "\r\n", "\n"); other[i+1][j] != want {
					t.Fatalf("encoding/csv reads %q for %q", other[i+1][j], v)
				}
			}
		}
	})
}

func TestJSONLRoundTrip(t *testing.T) {
	values := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return strings.ReplaceAll(s, "\x00", "") }),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil), rapid.Just[any]([]any{"x", map[string]any{"k": nil}}),
	)
	rapid.Check(t, func(t *rapid.T) {
		columns := headers.Draw(t, "columns")
		rows := [][]any{}
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = values.Draw(t, "value")
			}
			rows = append(rows, row)
		}
		text := write(t, export.JSONL, columns, rows...)
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if !json.Valid([]byte(line)) {
				t.Fatalf("%q is not JSON", line)
			}
		}
		gotColumns, gotRows := readAll(t, "t.jsonl", text)
		if d := cmp.Diff(columns, gotColumns) + cmp.Diff(rows, gotRows); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	row := []any{"12345", "someone@example.com", "Acme, Ltd", int64(7), nil}
	w, err := export.New(io.Discard, export.CSV, []string{"a", "b", "c", "d", "e"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(row); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func ExampleNew() {
	var b strings.Builder
	w, _ := export.New(&b, export.CSV, []string{"email", "tags", "note"})
	_ = w.Write([]any{"ada@example.com", []any{"x", "y"}, nil})
	_ = w.Flush()
	fmt.Print(b.String())
	// Output:
	// email,tags,note
	// ada@example.com,"[""x"",""y""]",
}
