package intake

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/value"
)

func TestM2JSONIsReadAsItIs(t *testing.T) {
	text := `{"id":1,"name":"Zoë 😀","tags":["a",{"b":null}]}` + "\r\n\n  \n" +
		`{"name":null,"extra":-0.5,"id":9007199254740992}` + "\n" +
		`{"big":9007199254740994,"e":1e3,"esc":"\u00e9\ud83d\ude00\n\"\\\/","t":true,"f":false}`
	columns, rows, lines, err := readAll("t.jsonl", text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"id", "name", "tags", "extra", "big", "e", "esc", "t", "f"}, columns); d != "" {
		t.Error(d)
	}
	want := [][]any{
		{int64(1), "Zoë 😀", []any{"a", map[string]any{"b": nil}}},
		{int64(9007199254740992), nil, nil, -0.5},
		{nil, nil, nil, nil, int64(9007199254740994), 1000.0, "é😀\n\"\\/", true, false},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int64{1, 4, 5}, lines); d != "" {
		t.Error(d)
	}

	array := "[" + strings.NewReplacer("}\r\n\n  \n", "},\n", "}\n", "},").Replace(text) + " ]\n "
	arrayColumns, arrayRows, elements, err := readAll("t.json", array, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(columns, arrayColumns) + cmp.Diff(want, arrayRows) + cmp.Diff([]int64{1, 2, 3}, elements); d != "" {
		t.Error(d)
	}
}

func TestM2JSONRefusals(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	cases := map[string]struct {
		text, want string
		lossy      bool
	}{
		"rounded integer":      {`{"a":1}` + "\n" + `{"a":1,"id":9007199254740993}`, `t.jsonl:2:13: row 2: column "id": `, true},
		"rounded, nested":      {`{"a":{"b":[-9007199254740993]}}`, `column "a"`, true},
		"integer over 64 bit":  {`{"a":18446744073709551616}`, `column "a"`, true},
		"number too large":     {`{"a":1e999}`, `column "a"`, true},
		"lone surrogate":       {`{"a":"x\ud800"}`, `t.jsonl:1:8: row 1: column "a": value cannot be carried unchanged: \ud800`, true},
		"low surrogate first":  {`{"a":"\udc00\ud800"}`, `\udc00 is half`, true},
		"surrogate and letter": {`{"a":"\ud800\u0041"}`, `\ud800 is half`, true},
		"duplicate key":        {`{"a":1,"b":2,"a":3}`, `t.jsonl:1:14: row 1: the key "a" occurs twice`, false},
		"escaped duplicate":    {`{"a":1,"\u0061":3}`, `the key "a" occurs twice`, false},
		"nested duplicate":     {`{"x":{"k":1,"k":1}}`, `column "x": the key "k" occurs twice`, false},
		"invalid UTF-8":        {"{\"a\":\"ä\xff\"}", "t.jsonl:1:8: invalid UTF-8", false},
		"empty key":            {`{"":1}`, "a column needs a name", false},
		"not an object":        {"{\"a\":1}\n17\n", "t.jsonl:2:1: row 2: found '1' where '{' should be", false},
		"an array":             {`[{"a":1}]`, "name the file .json", false},
		"pretty-printed":       {"{\n\"a\":1}", "t.jsonl:1:3: row 1: the JSON ends early", false},
		"two on a line":        {`{"a":1}{"a":2}`, "t.jsonl:1:8: row 1: found '{' where the end should be", false},
		"comma missing":        {`{"a":1 "b":2}`, "found '\"' where ',' should be", false},
		"comma too many":       {`{"a":1,}`, "a key in quotes", false},
		"leading zero":         {`{"a":01}`, "not a JSON number", false},
		"NaN":                  {`{"a":NaN}`, "t.jsonl:1:6: row 1: column \"a\": found 'N' where a value should be", false},
		"Infinity":             {`{"a":-Infinity}`, "not a JSON number", false},
		"dot without digits":   {`{"a":1.}`, "not a JSON number", false},
		"raw control":          {"{\"a\":\"x\ty\"}", `write it as \u0009`, false},
		"bad escape":           {`{"a":"\x"}`, `unknown escape \x`, false},
		"bad hex":              {`{"a":"\u00g0"}`, "four hexadecimal digits", false},
		"no end of string":     {`{"a":"x`, "t.jsonl:1:6: row 1: column \"a\": the string that begins here has no end", false},
		"too deep":             {`{"a":` + deep + `}`, "nested more than 200 levels", false},
		"long line":            {`{"a":"` + strings.Repeat("x", MaxRecord) + `"}`, "t.jsonl:1: the line is longer than 16 MB", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := readAll("t.jsonl", c.text, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if errors.Is(err, value.ErrLossy) != c.lossy {
				t.Errorf("ErrLossy: %v", !c.lossy)
			}
		})
	}
}

func TestM2JSONArrayRefusals(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"object":          {`{"a":1}`, "one array of objects"},
		"cut off":         {`[{"a":1},{"a":`, "element 2: the file ends before the array does"},
		"cut off between": {`[{"a":1}`, "the file ends before the array does"},
		"not an object":   {`[{"a":1}, 5]`, "element 2: found '5' where '{' should be"},
		"more after":      {`[{"a":1}] []`, "there is more after the end of the array"},
		"rounded":         {`[{"a":1},{"id":9007199254740993}]`, `element 2: column "id"`},
		"no comma":        {`[{"a":1} {"a":2}]`, "element 2: "},
		"invalid UTF-8":   {"[{\"a\":1},\n{\"a\":\"\xff\"}]", "t.json:2:7: invalid UTF-8"},
		"large element":   {`[{"a":"` + strings.Repeat("x", MaxRecord) + `"}]`, "element 1 is longer than 16 MB"},
	}
	for name, c := range cases {
		if _, _, _, err := readAll("t.json", c.text, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if columns, rows, _, err := readAll("t.json", "[]", Options{}); err != nil || len(columns)+len(rows) > 0 {
		t.Errorf("[] is a table without rows: %v %v %v", columns, rows, err)
	}
}

func TestColumnsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"c":0`)
	for i := range MaxColumns {
		fmt.Fprintf(&b, `,"c%d":1`, i)
	}
	b.WriteString("}")
	if _, _, _, err := readAll("t.jsonl", b.String(), Options{}); err == nil || !strings.Contains(err.Error(), "more than 5000 columns") {
		t.Errorf("got %v", err)
	}
}

// FuzzJSONL: a line that is read equals what encoding/json reads of it; nothing panics.
func FuzzJSONL(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":[1.5e3,-0,"\u00e9\ud83d\ude00"],"b":{"c":null}}`, `{"a":9007199254740993}`, `{"a":"\ud800"}`, " {} "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n") {
			return
		}
		columns, rows, _, err := readAll("f.jsonl", line, Options{})
		if err != nil || len(rows) != 1 {
			return
		}
		want, err := value.Decode([]byte(strings.TrimPrefix(line, "\uFEFF")))
		if err != nil {
			t.Fatalf("read %q, the value package says %v", line, err)
		}
		if d := cmp.Diff(want, any(rowMap(columns, rows[0])), cmp.Comparer(sameFloat)); d != "" {
			t.Fatalf("%q: %s", line, d)
		}
	})
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
