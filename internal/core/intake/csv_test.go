package intake

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the columns and rows of a source; what it could not read is the error.
func readAll(name, text string, opts Options) (columns []string, rows [][]any, lines []int64, err error) {
	src, err := Open(name, strings.NewReader(text), opts)
	if err != nil {
		return nil, nil, nil, err
	}
	for {
		row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return src.Columns(), rows, lines, nil
		}
		if err != nil {
			return src.Columns(), rows, lines, err
		}
		rows, lines = append(rows, row.Values), append(lines, row.Line)
	}
}

func TestM2CSVIsReadAsItIs(t *testing.T) {
	ab := []string{"a", "b"}
	cases := map[string]struct {
		text    string
		opts    Options
		columns []string
		rows    [][]any
		lines   []int64
	}{
		"plain":                  {"a,b\n1,2\n3,4\n", Options{}, ab, [][]any{{"1", "2"}, {"3", "4"}}, []int64{2, 3}},
		"no last line end":       {"a,b\n1,2", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"CRLF":                   {"a,b\r\n1,2\r\n", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"CR":                     {"a,b\r1,2\r3,\"x\ry\"\r", Options{}, ab, [][]any{{"1", "2"}, {"3", "x\ry"}}, []int64{2, 3}},
		"CR at the very end":     {"a,b\n1,2\r", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"BOM":                    {"\uFEFFa,b\n1,2\n", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"BOM and quotes":         {"\uFEFF\"a\",b\n1,2\n", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"semicolons":             {"a;b\n1,5;2\n", Options{}, ab, [][]any{{"1,5", "2"}}, []int64{2}},
		"tabs":                   {"a\tb\n1\t2\n", Options{}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"delimiters in quotes":   {"\"a,x,y,z\";b\n1;2\n", Options{}, []string{"a,x,y,z", "b"}, [][]any{{"1", "2"}}, []int64{2}},
		"delimiter given":        {"a|b\n1|2\n", Options{Delimiter: '|'}, ab, [][]any{{"1", "2"}}, []int64{2}},
		"quoted line ends":       {"a,b\n\"x\ny\",2\n3,4\n", Options{}, ab, [][]any{{"x\ny", "2"}, {"3", "4"}}, []int64{2, 4}},
		"CRLF in quotes is kept": {"a,b\r\n\"x\r\ny\",2\r\n", Options{}, ab, [][]any{{"x\r\ny", "2"}}, []int64{2}},
		"doubled quotes":         {"a,b\n\"say \"\"hi\"\"\",\"\"\"\"\n", Options{}, ab, [][]any{{`say "hi"`, `"`}}, []int64{2}},
		"blank lines":            {"\n\r\na,b\n\n1,2\n\r\n\n3,4\n\n", Options{}, ab, [][]any{{"1", "2"}, {"3", "4"}}, []int64{5, 8}},
		"spaces are kept":        {"a,b\n 1 ,\" 2\"\n", Options{}, ab, [][]any{{" 1 ", " 2"}}, []int64{2}},
		"empty cells":            {"a,b\n,\n\"\",\n", Options{}, ab, [][]any{{"", ""}, {"", ""}}, []int64{2, 3}},
		"one empty cell":         {"a\n\"\"\nx\n", Options{}, []string{"a"}, [][]any{{""}, {"x"}}, []int64{2, 3}},
		"long numbers are text":  {"a,b\n9007199254740993,007\n", Options{}, ab, [][]any{{"9007199254740993", "007"}}, []int64{2}},
		"header alone":           {"a,b\n", Options{}, ab, nil, nil},
		"limit":                  {"a,b\n1,2\n3,4\n5,6,7\n", Options{Limit: 2}, ab, [][]any{{"1", "2"}, {"3", "4"}}, []int64{2, 3}},
		"letters beyond ASCII":   {"ä,b\nÖ😀,€\n", Options{}, []string{"ä", "b"}, [][]any{{"Ö😀", "€"}}, []int64{2}},
		"windows-1252":           {"a,b\nM\xfcller,\x80\n", Options{Encoding: "windows-1252"}, ab, [][]any{{"Müller", "€"}}, []int64{2}},
		"latin1":                 {"a,b\nM\xfcller,2\n", Options{Encoding: "latin1"}, ab, [][]any{{"Müller", "2"}}, []int64{2}},
		"UTF-16 by its mark":     {"\xff\xfea\x00,\x00b\x00\n\x00\xfc\x00,\x002\x00", Options{}, ab, [][]any{{"ü", "2"}}, []int64{2}},
		"UTF-16 big-endian":      {"\xfe\xff\x00a\x00,\x00b\x00\n\xd8\x3d\xde\x00\x00,\x002", Options{}, ab, [][]any{{"😀", "2"}}, []int64{2}},
		"UTF-16 by name":         {"a\x00,\x00b\x00\n\x001\x00,\x002\x00", Options{Encoding: "utf-16le"}, ab, [][]any{{"1", "2"}}, []int64{2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			columns, rows, lines, err := readAll("t.csv", c.text, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.columns, columns); d != "" {
				t.Errorf("columns: %s", d)
			}
			if d := cmp.Diff(c.rows, rows); d != "" {
				t.Errorf("rows: %s", d)
			}
			if d := cmp.Diff(c.lines, lines); d != "" {
				t.Errorf("lines: %s", d)
			}
		})
	}
}

// Every refusal says where and what to do.
func TestM2CSVRefusals(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	cases := map[string]struct {
		text string
		opts Options
		want string
	}{
		"empty":                {"", Options{}, "t.csv: no header and no rows"},
		"only blank lines":     {"\n\r\n\n", Options{}, "t.csv: no header and no rows"},
		"only a BOM":           {"\uFEFF", Options{}, "t.csv: no header and no rows"},
		"duplicate header":     {"a,b,a\n", Options{}, `t.csv:1: the header has "a" twice, in columns 1 and 3; rename one`},
		"empty header":         {"\n a,, b\n", Options{}, "t.csv:2: column 2 of the header has no name"},
		"blank header":         {"a,\" \"\n", Options{}, "t.csv:1: column 2 of the header has no name"},
		"short row":            {"a,b\n1,2\n\n3\n", Options{}, "t.csv:4: row 2 has 1 fields, but the header has 2 columns"},
		"long row":             {"a,b\n1,\"2\n\"\n3,4,5\n", Options{}, "t.csv:4: row 2 has 3 fields, but the header has 2 columns"},
		"open quote":           {"a,b\n1,2\n3,\"x\ny\nz", Options{}, "t.csv:3:3: a quote opens here and is never closed"},
		"second quote is open": {"a,b\n\"ä\nö\",\"x", Options{}, "t.csv:3:4: a quote opens here and is never closed"},
		"stray quote":          {"a,b\n1,ä\"x\n", Options{}, "t.csv:2:4: a quote inside a field"},
		"stray after newline":  {"a,b\n\"x\ny\",2\"\n", Options{}, "t.csv:3:5: a quote inside a field"},
		"text after quote":     {"a,b\n\"x\"y,2\n", Options{}, "t.csv:2:4: text after a closing quote"},
		"space after quote":    {"a,b\n\"x\" ,2\n", Options{}, "t.csv:2:4: text after a closing quote"},
		"lone CR after quote":  {"a,b\n\"x\"\r,2\n", Options{}, "t.csv:2:4: text after a closing quote"},
		"invalid UTF-8":        {"a,b\n1,ä\xfcx\n", Options{}, "t.csv:2:4: invalid UTF-8 here; if the file has another encoding, pass --encoding"},
		"invalid far away":     {"a\n" + long + "\n" + long + "ä\xff\n", Options{}, "t.csv:3:70002: invalid UTF-8"},
		"cut off character":    {"a\nx\xe2\x82", Options{}, "t.csv:2:2: invalid UTF-8"},
		"surrogate":            {"a\n\xed\xa0\x80", Options{}, "t.csv:2:1: invalid UTF-8"},
		"NUL":                  {"a,b\n1,x\x00\n", Options{}, "t.csv:2:4: a NUL byte"},
		"UTF-16 without mark":  {"a\x00,\x00b\x00\n\x00", Options{}, "t.csv:1:2: a NUL byte; if the file is UTF-16, pass --encoding utf-16le"},
		"unknown encoding":     {"a\n", Options{Encoding: "windws-1252"}, `t.csv: unknown encoding "windws-1252"; did you mean "windows-1252"?`},
		"wrong encoding":       {"a\nx\x82\n", Options{Encoding: "shift_jis"}, "t.csv:2:2: these bytes are not valid shift_jis"},
		"odd UTF-16":           {"\xff\xfea\x00\n\x00b", Options{}, "t.csv:2:1: these bytes are not valid UTF-16"},
		"workbook":             {"PK\x03\x04\x00\x00", Options{}, "t.csv: this is a ZIP or a spreadsheet workbook; save it as CSV"},
		"gzip":                 {"\x1f\x8b\x08", Options{}, "t.csv: this is compressed by gzip"},
		"bad delimiter":        {"a\n", Options{Delimiter: '"'}, "cannot be a delimiter"},
		"unknown format":       {"a\n", Options{Format: "xlsx"}, `unknown format "xlsx"; known are csv, jsonl and json`},
		"negative limit":       {"a\n", Options{Limit: -1}, "t.csv: the limit is -1; it must be positive"},
		"record without end":   {"a\n" + strings.Repeat("x", MaxRecord+1), Options{}, "t.csv:2: the record is longer than 16 MB"},
		"quote without end":    {"a\nb\n\"" + strings.Repeat("x\n", MaxRecord/2+1), Options{}, "t.csv:3:1: a quote opens here and is not closed within 16 MB"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := readAll("t.csv", c.text, c.opts)
			if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "t.csv: "), strings.TrimPrefix(c.want, "t.csv: ")) &&
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestEmptySourceIsErrEmpty(t *testing.T) {
	for name, text := range map[string]string{"a.csv": "", "b.csv": "\n\n", "c.jsonl": "\n \n", "d.json": " "} {
		if _, _, _, err := readAll(name, text, Options{}); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v is not ErrEmpty", name, err)
		}
	}
}

// A row before a mistake is given out: the first mistake of a file is the one that is named.
func TestRowsBeforeAMistakeAreRead(t *testing.T) {
	_, rows, _, err := readAll("t.csv", "a,b\n1,2\n3,\xff\n", Options{})
	if len(rows) != 1 || err == nil {
		t.Errorf("rows %v, error %v", rows, err)
	}
	_, _, _, err = readAll("t.csv", "a,b\n1\n3,\xff\n", Options{})
	if err == nil || !strings.Contains(err.Error(), "t.csv:2: row 1 has 1 fields") {
		t.Errorf("the ragged row comes first, got %v", err)
	}
}

func TestFormatIsDetected(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"-", " \n{\"a\":1}\n", "a"}, {"-", "[{\"b\":1}]", "b"}, {"-", "c\n1\n", "c"}, {"noextension", "d;e\n1;2\n", "d"},
		{"X.NDJSON", "{\"f\":1}", "f"}, {"x.JSON", "[{\"g\":1}]", "g"}, {"x.tsv", "h\ti\n1\t2", "h"},
		{"-", "\uFEFF{\"j\":1}", "j"},
	}
	for _, c := range cases {
		columns, _, _, err := readAll(c.name, c.text, Options{})
		if err != nil || columns[0] != c.want {
			t.Errorf("%s %q: columns %v, error %v", c.name, c.text, columns, err)
		}
	}
}

func TestSourceDigestIsOfTheRawBytes(t *testing.T) {
	for name, text := range map[string]string{
		"a.csv": "\uFEFFa,b\r\n1,2\r\n\r\n", "b.jsonl": "{\"a\":1}\n\n", "c.json": "[{\"a\":1}]\n\n",
		"long.csv": "a\n" + strings.Repeat("some text\n", 50_000),
	} {
		src := openText(t, name, text, Options{})
		for err := error(nil); err == nil; {
			_, err = src.Next()
		}
		sum := sha256.Sum256([]byte(text))
		if got := src.(Digester).SourceDigest(); got != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Under a limit the digest does not depend on how the bytes arrive.
func TestSourceDigestUnderALimit(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,2\n", 100_000)
	digest := func(r io.Reader) string {
		src, err := Open("a.csv", r, Options{Limit: 30_000})
		if err != nil {
			t.Fatal(err)
		}
		for err = nil; err == nil; {
			_, err = src.Next()
		}
		return src.(Digester).SourceDigest()
	}
	whole := digest(strings.NewReader(text))
	if half := digest(iotest.HalfReader(strings.NewReader(text))); half != whole {
		t.Error("differs if the reader gives half of what is asked")
	}
	if longer := digest(strings.NewReader(text + "x")); longer != whole {
		t.Error("depends on what is behind the limit")
	}
}

func TestReadFailureIsReported(t *testing.T) {
	broken := errors.New("cable pulled")
	for _, rows := range []int{0, 1, 50_000} {
		text := "a,b\n" + strings.Repeat("1,2\n", rows)
		src, err := Open("a.csv", io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), Options{})
		read := -1
		for ; err == nil; read++ {
			_, err = src.Next()
		}
		if !errors.Is(err, broken) || read != rows {
			t.Errorf("%d rows: read %d, then %v", rows, read, err)
		}
	}
	if _, err := Open("a.csv", iotest.ErrReader(broken), Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// FuzzCSV: what encoding/csv reads, this reads alike, except that CRLF inside quotes is kept; nothing panics.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a;b\r\n\"x\r\ny\";\"\"\"\"\r\n", "a\r1\r", "\uFEFFa\n\n\"\"", "a,b\n\"x", "a\n\r", "\"a\"\r", "\"\r\r\n0\"", "\xff\xfe00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		columns, rows, _, err := readAll("f.csv", text, Options{Delimiter: ','})
		if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			return // UTF-16
		}
		cut := strings.TrimPrefix(text, "\uFEFF")
		if strings.Contains(cut, "\r") && !strings.Contains(cut, "\n") {
			return // CR ends lines here, which encoding/csv does not know
		}
		r := csv.NewReader(strings.NewReader(cut))
		want, wantErr := r.ReadAll()
		if err == nil && wantErr != nil {
			t.Fatalf("read %q, encoding/csv says %v", text, wantErr)
		}
		if err != nil {
			return // refusals of this package (headers, NUL, ...) are tested by name
		}
		all := [][]string{columns}
		for _, row := range rows {
			line := []string{}
			for _, v := range row {
				line = append(line, v.(string))
			}
			all = append(all, line)
		}
		for _, line := range all {
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], "\r\n", "\n")
			}
		}
		if d := cmp.Diff(want, all); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}
