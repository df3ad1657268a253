package mapspec

import (
	"sync"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
)

func TestTemplateValues(t *testing.T) {
	for _, c := range []struct {
		src  string
		want any
	}{
		{`plain text`, "plain text"},
		{`""`, ""},
		{`7`, int64(7)},
		{`-7`, int64(-7)},
		{`2.50`, 2.5},
		{`1e3`, 1000.0},
		{`true`, true},
		{`~`, nil},
		{`"2020-01-01"`, "2020-01-01"},
		{`2020-01-01`, "2020-01-01"},
		{`[1, a, {b: null}]`, []any{int64(1), "a", map[string]any{"b": nil}}},
		{`[]`, []any{}},
		{`{}`, map[string]any{}},
		{`${row.a}`, "x"},
		{`" ${row.a}"`, " x"},
		{`${row.nil}`, nil},
		{`"[${row.nil}]"`, "[]"},
		{`"${index}|${true}|${1.5}|${3.0}|${-0.25}"`, "4|true|1.5|3|-0.25"},
		{`"${cells.company.tags} ${cells.company}"`, `["t1",2] {"name":"Acme","tags":["t1",2]}`},
		{`$${row.a}`, "${row.a}"},
		{`"$${row.a} ${row.a} $$ $ {}"`, "${row.a} x $$ $ {}"},
		{`'${ {"a": 1}["a"] }'`, int64(1)},
		{`'${"}"}'`, "}"},
		{`'${"a\"}" + r"\" + ''}''}'`, `a"}\}`},
		{`'${"""a"}b"""}!'`, `a"}b!`},
		{`'${{"a": {"b": "}"}}}'`, map[string]any{"a": map[string]any{"b": "}"}}},
		{"|-\n  ${row.a} // not a comment\n", "x // not a comment"},
		{`'${row.a // a comment }'`, "x"},
		{`{k: "${row.a}", l: ["${index}", lit]}`, map[string]any{"k": "x", "l": []any{int64(4), "lit"}}},
		{`${row["strange name"]}`, "s"},
		{`${cells.company.name}`, "Acme"},
		{`${vars.big}`, int64(1) << 60},
		{`${5u}`, int64(5)},
		{`${b"hi"}`, "aGk="},
		{`${timestamp("2024-05-01T10:00:00Z")}`, "2024-05-01T10:00:00Z"},
		{`${duration("90m")}`, "5400s"},
		{`${row.a == "x" && index < 5.5}`, true},
		{`'${row.first.lowerAscii().split("n")}'`, []any{"a", "", ""}},
		{`${math.greatest(1, 7, 3)}`, int64(7)},
		{`'${[3, 1, 2].sort()}'`, []any{int64(1), int64(2), int64(3)}},
		{`${base64.encode(b"hi")}`, "aGk="},
		{`'${sets.contains([1, 2], [2])}'`, true},
		{`'${["a", "b"].join("-")} ${"aXbX".replace("X", "y", 1)} ${"%s=%d".format(["k", 3])}'`, "a-b aybX k=3"},
		{`'${[1, 2].map(x, {"v": x})}'`, []any{map[string]any{"v": int64(1)}, map[string]any{"v": int64(2)}}},
		{`${body.items[0].d + 1.0}`, 2.5},
		{`${headers["x-id"]}`, "9"},
		{`'${has(row.zzz) ? 1 : 2}'`, int64(2)},
		{`${int(row.n) + 1}`, int64(8)},
	} {
		tpl, err := parseValue(t, c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		got, err := tpl.Eval(sampleEnv())
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.src, err, diff)
		}
	}
}

func TestTemplateErrorsNameTheExpression(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`${row.zzz}`, "${row.zzz}: no such key: zzz"},
		{`${cells.none.x}`, "${cells.none.x}: no such key: x"},
		{`${cells.company.nmae}`, "no such key: nmae"},
		{`${row.n + 1}`, "convert with int()"},
		{`${1 / (index - 4)}`, "division by zero"},
		{`${body.items[3]}`, "index out of bounds: 3"},
		{`${double("NaN")}`, "not a number that can be kept"},
		{`${1.0 / 0.0}`, "not a number that can be kept"},
		{`${18446744073709551615u}`, "does not fit"},
		{`${9223372036854775807 + index}`, "overflow"},
		{`'${ {1: 2} }'`, "a map key is of type int"},
		{`${type(1)}`, "cannot be kept"},
		{`"${row.a} ${row.zzz}"`, "${row.zzz}: no such key: zzz"},
		{`[1, {a: "${row.zzz}"}]`, "no such key: zzz"},
		{`${int(row.a)}`, "${int(row.a)}: "},
	} {
		_, err := mustValue(t, c.src).Eval(sampleEnv())
		wantError(t, err, c.want)
	}
}

// Plain selections do not go through the interpreter: they must not be told apart from those that do.
func TestPlainSelectionsAreTheSameAsInCEL(t *testing.T) {
	envs := []*Env{sampleEnv(), {}, {Body: []any{int64(1)}, Result: "text", Cells: map[string]any{"company": "text"}}}
	for _, src := range []string{
		"row.a", "row.nil", "row.zzz", `row["strange name"]`, "cells.company", "cells.company.name", "cells.company.tags",
		"cells.none", "cells.none.x", "vars.country", "index", "result", "body", "body.items", "body.ok.x", `headers["x-id"]`, "input.domain",
	} {
		fast, mistakes := compileExpr(everything, src)
		if len(mistakes) > 0 || fast.path == nil {
			t.Fatalf("%s: not a plain selection: %v", src, mistakes)
		}
		slow := *fast
		slow.path = nil
		for i, env := range envs {
			got, gotErr := fast.eval(env)
			want, wantErr := slow.eval(env)
			if diff := cmp.Diff(want, got); diff != "" || errText(gotErr) != errText(wantErr) {
				t.Errorf("%s in env %d: %s, errors %v and %v", src, i, diff, gotErr, wantErr)
			}
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWholeVariablesAreCopied(t *testing.T) {
	env := sampleEnv()
	got, err := mustValue(t, "${cells}").Eval(env)
	if err != nil {
		t.Fatal(err)
	}
	env.Cells["later"] = 1
	if _, seen := got.(map[string]any)["later"]; seen {
		t.Error("a cell that was filled later appeared in an earlier value")
	}
}

func TestConditionsMustBeTrueOrFalse(t *testing.T) {
	env := sampleEnv()
	for src, want := range map[string]bool{`${row.a == "x"}`: true, `${index > 4}`: false, "true": true, "false": false, "${body.ok}": true} {
		got, err := mustValue(t, src).EvalBool(env)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}
	for src, want := range map[string]string{"${row.a}": "not text", "${row.nil}": "not null", `"${true} "`: "true or false", "yes": "true or false"} {
		_, err := mustValue(t, src).EvalBool(env)
		wantError(t, err, want)
	}
}

func TestExpensiveExpressionsAreStopped(t *testing.T) {
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = 'a'
	}
	env := sampleEnv()
	env.Row["big"] = string(big)
	for src, want := range map[string]string{
		`${lists.range(1000).map(x, lists.range(1000).map(y, x * y)).size()}`:                                      "too much work",
		`${lists.range(100000).filter(x, x > 5).size()}`:                                                           "too much work",
		`${lists.range(1000000000)}`:                                                                               "range",
		`${row.big.replace("", row.big)}`:                                                                          "larger than 16 MB",
		`${lists.range(100).map(x, row.big).join("")}`:                                                             "larger than 16 MB",
		`${"%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s".format(lists.range(17).map(x, row.big))}`:                          "larger than 16 MB",
		`${lists.range(20).map(x, row.big)}`:                                                                       "larger than 16 MB",
		`${"a".replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").replace("a", row.big).replace("a", row.big)}`: "larger than 16 MB",
	} {
		_, err := mustValue(t, "'"+src+"'").Eval(env)
		wantError(t, err, want)
	}
}

func TestTemplatesAreSafeForConcurrentUse(t *testing.T) {
	tpl := mustValue(t, `{a: "${row.a} ${index}", b: "${row.first.lowerAscii()}", c: '${[1].map(x, x + index)}'}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			env := sampleEnv()
			env.Index = int64(i)
			for range 50 {
				got, err := tpl.Eval(env)
				if err != nil || got.(map[string]any)["c"].([]any)[0] != int64(i)+1 {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestTemplateTellsWhatItRefersTo(t *testing.T) {
	for _, c := range []struct {
		src        string
		cells, row []string
		all        bool
	}{
		{`${cells.a} `, []string{"a"}, nil, false},
		{`{x: "${cells.a + cells['b']}", y: ["${row.c}"]}`, []string{"a", "b"}, []string{"c"}, false},
		{`${has(cells.a) && row.d.size() > 0}`, []string{"a"}, []string{"d"}, false},
		{`${cells[row.k]}`, nil, []string{"k"}, true},
		{`${cells}`, nil, nil, true},
		{`'${["x"].map(cells, cells.size())}'`, nil, nil, false},
		{`'${[row.r].filter(x, x == cells.a)}'`, []string{"a"}, []string{"r"}, false},
		{`text`, nil, nil, false},
	} {
		tpl := mustValue(t, c.src)
		cells, all := tpl.Cells()
		row, _ := tpl.Rows()
		if diff := cmp.Diff([][]string{c.cells, c.row}, [][]string{cells, row}); diff != "" || all != c.all {
			t.Errorf("%s: all %v %s", c.src, all, diff)
		}
	}
}

func TestTypesAreKnownBeforeRunning(t *testing.T) {
	e, _ := compileExpr(everything, `row.a == "x"`)
	if !e.mayBe(types.BoolKind) || e.mayBe(types.IntKind) {
		t.Error("a comparison gives true or false and nothing else")
	}
	e, _ = compileExpr(everything, `row.a`)
	if !e.mayBe(types.BoolKind) || !e.mayBe(types.IntKind) {
		t.Error("a cell may be anything")
	}
}

func BenchmarkEval(b *testing.B) {
	for _, src := range []string{"${row.a}", "${cells.company.name}", `"Hi ${row.first}, ${vars.country}"`, `${row.a != ""}`,
		`'${row.first.split("n")[0]}'`, `{domain: "${row.a}"}`} {
		tpl, env := mustValue(b, src), sampleEnv()
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tpl.Eval(env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSourceIsTheTemplateAsWritten(t *testing.T) {
	for src, want := range map[string]string{
		`"a ${row.a}"`: "a ${row.a}", `{b: 1, a: ["${row.a}", null]}`: `{"a":["${row.a}",null],"b":1}`, "~": "null", "1.50": "1.5",
	} {
		if got := mustValue(t, src).Source(); got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

func TestArgumentsMustBeAMap(t *testing.T) {
	m, err := ParseMap("m", []byte("version: 1\ncolumns: [{name: a, call: alpha.phone, with: '${row.args}'}]"), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	step := m.Columns[0].Steps[0]
	got, err := step.Arguments(&Env{Row: map[string]any{"args": map[string]any{"domain": "x"}}})
	if diff := cmp.Diff(map[string]any{"domain": "x", "page": nil}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = step.Arguments(&Env{Row: map[string]any{"args": "text"}})
	wantError(t, err, "`with` must be a map, not text")
	_, err = step.Arguments(&Env{Row: map[string]any{}})
	wantError(t, err, "no such key: args")
}

func TestReads(t *testing.T) {
	tpl := mustValue(t, `{x: "${cells.a}", y: "${has(row.b)}"}`)
	if !tpl.Reads("cells") || !tpl.Reads("row") || tpl.Reads("index") || (*Template)(nil).Reads("row") {
		t.Error("a template reads the variables that its expressions name, and no others")
	}
}
