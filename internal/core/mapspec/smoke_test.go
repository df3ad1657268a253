package mapspec

import (
	"os"
	"testing"
)

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func catalogue(t *testing.T) *Catalogue {
	t.Helper()
	c, err := ParseTools("tools.yaml", readTestdata(t, "tools.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSmoke(t *testing.T) {
	cat := catalogue(t)
	m, err := ParseMap("map.yaml", readTestdata(t, "map.yaml"), cat)
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Row: map[string]any{"email": "a@b.de", "first": "Ann"}, Cells: map[string]any{}, Vars: m.Vars}
	v, err := m.Columns[0].Value.Eval(env)
	t.Log(v, err)
	env.Cells["domain"] = v
	w, err := m.Columns[1].Steps[0].With.Eval(env)
	t.Log(w, err)
	in, err := m.Columns[1].Steps[0].Tool.CheckInput(w.(map[string]any))
	t.Log(in, err)
	req, err := m.Columns[1].Steps[0].Tool.Request(in)
	t.Log(req, err)
	t.Log(m.Columns[1].When.EvalBool(env))
	w, err = m.Columns[2].Steps[1].With.Eval(env)
	t.Log(w, err)
	req, err = m.Columns[2].Steps[1].Tool.Request(w.(map[string]any))
	t.Logf("%+v %s %v", req, req.Body, err)
	t.Log(m.Output[2].Value.Eval(env))
	t.Log(cat.Tools["acme.company"].Interpret(200, nil, map[string]any{"company": map[string]any{"name": "x"}}, in))
	t.Log(m.Digest, cat.Digest, m.CheckInput("map.yaml", []string{"emial", "first"}))
	_, err = ParseMap("bad.yaml", []byte("version: 1\ncolums: 3\ncolumns:\n  - name: a\n    value: \"x ${row.a} ${cells.b}\"\n  - name: b\n    value: |\n      foo\n      ${rwo.x +}\n  - {name: b, when: ${x}"), nil)
	t.Log(err)
	_, err = ParseMap("bad.yaml", []byte("version: 1\ncolums: 3\ncolumns:\n  - name: a\n    value: \"x ${row.a} ${cells.b}\"\n  - name: b\n    value: |\n      foo\n      ${rwo.x} ${1 +}\n  - {name: b, call: x.y, when: '${1+1}'}\n  - {name: cc, value: '${status}${cells.bb}'}"), nil)
	t.Logf("\n%v", err)
}
