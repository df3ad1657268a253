package mapspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMapOfTheExample(t *testing.T) {
	m := exampleMap(t)
	if m.Name != "enrich-leads" || m.Key.Position() || m.Key.Columns[0] != "email" || m.Concurrency != 0 || m.FailFast || len(m.Columns) != 3 {
		t.Errorf("%+v", m)
	}
	company, phone := m.Columns[1], m.Columns[2]
	if company.Waterfall || len(company.Steps) != 1 || company.Steps[0].Tool.Name != "acme.company" || company.When == nil || company.OnError == nil {
		t.Errorf("%+v", company)
	}
	if !phone.Waterfall || len(phone.Steps) != 2 || phone.Steps[0].Accept == nil || phone.Steps[1].Accept != nil || phone.Otherwise == nil {
		t.Errorf("%+v", phone)
	}
	env := &Env{Row: map[string]any{"email": "ann@acme.de", "first": "Ann"}, Cells: map[string]any{}, Vars: m.Vars, Index: 2}
	domain, err := m.Columns[0].Value.Eval(env)
	if err != nil || domain != "acme.de" {
		t.Fatal(domain, err)
	}
	env.Cells["domain"] = domain
	args, err := phone.Steps[1].Arguments(env)
	if diff := cmp.Diff(map[string]any{"domain": "acme.de", "kind": "a", "id": int64(7)}, args); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got, err := m.Output[2].Value.Eval(env); err != nil || got != "Hi Ann, DE no. 3" {
		t.Error(got, err)
	}
	if cells, all := phone.Cells(); all || len(cells) != 1 || cells[0] != "domain" {
		t.Error(cells, all)
	}
}

func TestDefaultsOfAMap(t *testing.T) {
	m := parse(t, "version: 1\ncolumns: [{name: a, value: 1}]")
	if m.Name != "leads" || !m.Key.Position() || m.Concurrency != 0 || m.FailFast || m.Output != nil || m.Vars == nil {
		t.Errorf("%+v", m)
	}
	for key, position := range map[string]bool{"position": true, "email": false, "[a, b]": false, "${row.a + row.b}": false} {
		if got := parse(t, "version: 1\nkey: "+key+"\ncolumns: [{name: a, value: 1}]").Key.Position(); got != position {
			t.Errorf("key: %s by position: %v", key, got)
		}
	}
}

func parse(t testing.TB, src string) *Map {
	t.Helper()
	m, err := ParseMap("dir/leads.yaml", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCallWithoutACatalogue(t *testing.T) {
	_, err := ParseMap("m.yaml", []byte("version: 1\ncolumns: [{name: a, call: x.y}]"), nil)
	want := Problems{{"m.yaml", 2, 27, "no tool catalogue given for the call of `x.y`", "pass --tools"}}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestInputColumnsThatAreMissing(t *testing.T) {
	m := parse(t, `version: 1
key: [emial, "id"]
columns:
  - name: a
    value: "${row.frist} ${row[\"last name\"]}"
  - name: b
    value: '${has(row.maybe) ? row.maybe : row[cells.a]}'
  - name: c
    value: ${["x"].map(row, row.size())}
output: {x: "${row.id}"}
`)
	got := problems(t, m.CheckInput("m.yaml", []string{"email", "id", "first"}))
	want := Problems{
		{"m.yaml", 2, 7, "the input has no column `emial`, which is the key", "did you mean `email`?"},
		{"m.yaml", 5, 15, "the input has no column `frist`", "did you mean `first`?"},
		{"m.yaml", 5, 12, "the input has no column `last name`", "columns: email, first, id"},
	}
	want[1], want[2] = want[2], want[1] // the escaped expression is placed at the start of its text
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := m.CheckInput("m.yaml", []string{"emial", "id", "frist", "last name"}); err != nil {
		t.Error(err)
	}
}

func TestSetVars(t *testing.T) {
	const src = "version: 1\nvars: {s: DE, i: 1, f: 1.5, b: true, n: null, l: [1], m: {a: 1}}\ncolumns: [{name: a, value: 1}]"
	m := parse(t, src)
	before := m.Vars
	if err := m.SetVars(map[string]string{"s": "5", "i": "-7", "f": "2", "b": "false", "n": "x", "l": `["a"]`, "m": `{"b":1.5}`}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"s": "5", "i": int64(-7), "f": 2.0, "b": false, "n": "x", "l": []any{"a"}, "m": map[string]any{"b": 1.5}}
	if diff := cmp.Diff(want, m.Vars); diff != "" {
		t.Error(diff)
	}
	if before["s"] != "DE" {
		t.Error("the defaults were changed in place")
	}
	for set, want := range map[[2]string]string{
		{"i", "x"}: "variable `i` must be an integer like its default, not `x`", {"i", "1.5"}: "an integer", {"f", "NaN"}: "a number", {"f", `"1"`}: "a number",
		{"b", "yes"}: "a boolean", {"l", "{}"}: "a list", {"m", "[]"}: "a map", {"m", "x"}: "a map", {"ss", "1"}: "the map has no variable `ss`",
	} {
		wantError(t, m.SetVars(map[string]string{set[0]: set[1]}), want)
	}
	wantError(t, parse(t, strings.Replace(src, "s: DE", "country: DE", 1)).SetVars(map[string]string{"contry": "x"}), "did you mean `country`?")
}

func TestLineEndingsAndByteOrderMark(t *testing.T) {
	src := string(readTestdata(t, "map.yaml"))
	want := exampleMap(t).Digest
	for name, variant := range map[string]string{"BOM": "\ufeff" + src, "CRLF": strings.ReplaceAll(src, "\n", "\r\n")} {
		m, err := ParseMap("map.yaml", []byte(variant), catalogue(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Digest != want {
			t.Errorf("%s changes the meaning", name)
		}
	}
	_, err := ParseMap("m.yaml", []byte("\ufeffversion: 1\r\ncolumns:\r\n  - name: ä\r\n    value: \"ü ${row.a} ${cells.b}\"\r\n"), nil)
	want2 := Problems{{"m.yaml", 4, 26, "there is no column `b`", "there are no earlier columns"}}
	if diff := cmp.Diff(want2, problems(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	bomb := "version: 1\nvars:\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := 1; i < 12; i++ {
		a, b := string(rune('a'+i)), string(rune('a'+i-1))
		if i == 1 {
			b = "a0"
		}
		bomb += "  " + a + ": &" + a + " [" + strings.Repeat("*"+b+",", 9) + "*" + b + "]\n"
	}
	for name, c := range map[string]struct{ src, want string }{
		"aliases that multiply": {bomb, "more than 50000 values"},
		"an alias of itself":    {"a: &x [*x]", "nested deeper"},
		"brackets":              {strings.Repeat("[", 100_000), "nested deeper"},
		"braces":                {strings.Repeat("{a: ", 100_000), "nested deeper"},
		"dashes":                {strings.Repeat("- ", 100_000), "nested deeper"},
		"questions":             {strings.Repeat("? ", 100_000), "nested deeper"},
		"anchors":               {strings.Repeat("&a ", 100_000), "nested deeper"},
		"size":                  {strings.Repeat("#", MaxFileBytes+1), "at most 1048576 are accepted"},
		"encoding":              {"version: 1\nname: \xff", "not valid UTF-8"},
		"nested expression":     {"version: 1\ncolumns: [{name: a, value: '${" + strings.Repeat("(", 5000) + "}'}]", "m:2:"},
		"long expression":       {"version: 1\ncolumns: [{name: a, value: '${1" + strings.Repeat("+1", 20_000) + "}'}]", "m:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMap("m", []byte(c.src), nil)
			wantError(t, err, c.want)
		})
	}
}

func TestBudgetAsDeclared(t *testing.T) {
	for src, want := range map[string]Budget{
		"{calls: 10000, cost: 50.00}": {Calls: 10_000, CostMicros: 50_000_000}, "{cost: \"0.000001\"}": {CostMicros: 1}, "{calls: 1}": {Calls: 1}, "null": {},
	} {
		m, err := ParseMap("m.yaml", []byte("version: 1\nbudget: "+src+"\ncolumns: [{name: a, value: 1}]\n"), nil)
		if err != nil || m.Budget != want {
			t.Errorf("%s: %+v, %v", src, m, err)
		}
	}
}
