package mapspec

import (
	"strings"
	"testing"
)

const (
	digestMap = `# a map
version: 1
name: leads
key: [email]
vars: {country: DE, n: 1.50}
columns:
  - name: a
    value: ${row.email}
  - name: b
    when: ${cells.a != ""}
    value: {x: [1, "two", null]}
    onError: {value: null}
output: {email: "${row.email}", b: "${cells.b}"}
`
	digestMapJSON = `{"output": {"email": "${row.email}", "b": "${cells.b}"}, "columns": [
	{"value": "${row.email}", "name": "\u0061"},
	{"onError": {"value": null}, "name": "b", "value": {"x": [1, "two", null]}, "when": "${cells.a != \"\"}"}],
 "vars": {"n": 1.5, "country": "DE"}, "key": "email", "onRowError": "isolate", "concurrency": "auto", "name": "leads", "version": 1}`
)

func TestDigestOfAMapIsItsMeaning(t *testing.T) {
	want := parse(t, digestMap).Digest
	if len(want) != 64 {
		t.Fatal(want)
	}
	if got := parse(t, digestMapJSON).Digest; got != want {
		t.Error("the same map in JSON has another digest")
	}
	for name, change := range map[string][2]string{
		"comment": {"# a map", "# another comment"}, "quotes": {"two", "t\\x77o"}, "number": {"1.50", "1.5"}, "block": {"${row.email}\n", "|-\n      ${row.email}\n"},
	} {
		if got := parse(t, strings.Replace(digestMap, change[0], change[1], 1)).Digest; got != want {
			t.Errorf("%s: changes the digest, not the meaning", name)
		}
	}
	for name, change := range map[string][2]string{
		"name": {"leads", "lead"}, "key": {"[email]", "[id]"}, "vars": {"DE", "FR"}, "type": {"1.50", `"1.50"`}, "column": {"name: a", "name: a2"},
		"value": {"two", "three"}, "when": {`!= ""`, `!= "x"`}, "onError": {"onError: {value: null}", ""}, "output order": {`email: "${row.email}", b: "${cells.b}"`, `b: "${cells.b}", email: "${row.email}"`},
	} {
		src := strings.Replace(digestMap, change[0], change[1], 1)
		if name == "column" {
			src = strings.Replace(src, "cells.a ", "cells.a2 ", 1)
		}
		if src == digestMap || parse(t, src).Digest == want {
			t.Errorf("%s: does not change the digest", name)
		}
	}
}

func TestNameTakenFromTheFileIsNotInTheDigest(t *testing.T) {
	src := []byte("version: 1\ncolumns: [{name: a, value: 1}]")
	a, errA := ParseMap("a.yaml", src, nil)
	b, errB := ParseMap("b.yaml", src, nil)
	if errA != nil || errB != nil || a.Digest != b.Digest || a.Name == b.Name {
		t.Error(a, b, errA, errB)
	}
}

func TestDigestOfAToolIsWhatACallMeans(t *testing.T) {
	src := string(readTestdata(t, "tools.yaml"))
	base := catalogue(t)
	digests := func(old, replacement string) (tool, cat string) {
		t.Helper()
		changed := strings.Replace(src, old, replacement, 1)
		if changed == src {
			t.Fatalf("%q is not in the file", old)
		}
		c, err := ParseTools("tools.yaml", []byte(changed))
		if err != nil {
			t.Fatal(err)
		}
		return c.Tools["acme.company"].Digest, c.Digest
	}
	want := base.Tools["acme.company"].Digest
	for _, c := range [][2]string{
		{"rate: 20", "rate: 21"}, {"timeout: 20s", "timeout: 21s"}, {"attempts: 4", "attempts: 5"}, {"cache: 30d", "cache: 31d"}, {"cost: 0.01", "cost: 0.02"},
		{"env:ACME_KEY", "env:OTHER"}, {"concurrency: 10", "concurrency: 11"}, {"idempotent: true\n    fence: Idempotency-Key\n    retry: {attempts: 4}\n    cache: 30d", "fence: Idempotency-Key\n    retry: {attempts: 4}\n    idempotent: false"}, {"maxBody: 5MB", "maxBody: 6MB"},
	} {
		tool, cat := digests(c[0], c[1])
		if tool != want {
			t.Errorf("%s: changes what a call means", c[1])
		}
		if cat == base.Digest {
			t.Errorf("%s: does not change the catalogue", c[1])
		}
	}
	for _, c := range [][2]string{
		{"acme.example/v1", "acme.example/v2"}, {"method: GET", "method: DELETE"}, {"path: /companies/", "path: /company/"}, {`full: "true"`, `full: "false"`},
		{"headers: {}", "headers: {X-A: b}"}, {"status == 404", "status == 410"}, {"body.error != null", "body.err != null"}, {"result: ${body.company}", "result: ${body}"},
	} {
		if tool, _ := digests(c[0], c[1]); tool == want {
			t.Errorf("%s: does not change what a call means", c[1])
		}
	}
	if tool, cat := digests("version: 1\n", "version: 1 # comment\n\n"); tool != want || cat != base.Digest {
		t.Error("a comment changes the digest")
	}
}
