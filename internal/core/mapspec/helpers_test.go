package mapspec

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func catalogue(t testing.TB) *Catalogue {
	t.Helper()
	c, err := ParseTools("tools.yaml", readTestdata(t, "tools.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func exampleMap(t testing.TB) *Map {
	t.Helper()
	m, err := ParseMap("map.yaml", readTestdata(t, "map.yaml"), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// parseValue compiles YAML as a template with everything in scope.
func parseValue(t testing.TB, src string) (*Template, error) {
	t.Helper()
	r := &reporter{file: "t"}
	root := readFile(r, []byte(src))
	if root == nil {
		return nil, r.err()
	}
	tpl := newCompiler(r, []byte(src)).template(root, everything, nil)
	return tpl, r.err()
}

var everything = newScope("row", "cells", "vars", "index", "result", "status", "headers", "body", "input")

func mustValue(t testing.TB, src string) *Template {
	t.Helper()
	tpl, err := parseValue(t, src)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func sampleEnv() *Env {
	return &Env{
		Row:     map[string]any{"a": "x", "first": "Ann", "nil": nil, "empty": "", "n": "7", "strange name": "s"},
		Cells:   map[string]any{"company": map[string]any{"name": "Acme", "tags": []any{"t1", int64(2)}}, "none": nil},
		Vars:    map[string]any{"country": "DE", "big": int64(1) << 60},
		Index:   4,
		Status:  200,
		Headers: map[string]any{"x-id": "9"},
		Body:    map[string]any{"items": []any{map[string]any{"d": 1.5}}, "ok": true},
		Input:   map[string]any{"domain": "b.de"},
	}
}

func tool(t testing.TB, description string) *Tool {
	t.Helper()
	src := "version: 1\nproviders:\n  p: {url: 'https://api.example:8443/v1/'}\ntools:\n  p.t:\n" + indent(description)
	c, err := ParseTools("tools.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return c.Tools["p.t"]
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n"
}

func wantError(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got error %v, want one with %q", err, part)
	}
}

func problems(t testing.TB, err error) Problems {
	t.Helper()
	var p Problems
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want Problems", err)
	}
	return p
}
