package mapspec

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func finishMap(t testing.TB) *Map {
	t.Helper()
	m, err := ParseMap("finish.yaml", readTestdata(t, "finish.yaml"), catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// aRun is a run that has ended, as the engine gives it to expressions.
func aRun() *Env {
	return &Env{
		Row: map[string]any{"id": "r1", "name": "leads", "completed": int64(3), "failed": int64(1), "cost": 0.25, "startedAt": "2026-01-02T03:04:05Z",
			"calls": map[string]any{"dispatched": int64(7)}},
		Vars: map[string]any{"channel": "ops"},
	}
}

func TestFinishSeesTheRunAndTheVariables(t *testing.T) {
	m := finishMap(t)
	if len(m.Finish) != 4 {
		t.Fatal(len(m.Finish))
	}
	told, asked, report, note := m.Finish[0], m.Finish[1], m.Finish[2], m.Finish[3]
	env := aRun()
	if with, err := told.Call.Arguments(env); err != nil || with["domain"] != "leads: 3 done, 1 failed" {
		t.Error(with, err)
	}
	env.Result, env.Input = map[string]any{"id": "x"}, map[string]any{"domain": "d"}
	if kept, err := told.Call.Result.Eval(env); err != nil || kept != "xd" {
		t.Error(kept, err)
	}
	if instead, err := told.OnError.Eval(env); err != nil || instead != "r1" {
		t.Error(instead, err)
	}
	if with, err := asked.Call.Arguments(env); err != nil || with["id"] != int64(7) || with["domain"] != "ops" {
		t.Error(with, err)
	}
	if kept, err := asked.Call.Result.Eval(env); err != nil || kept != nil || asked.OnError != nil {
		t.Error("without `result` nothing is kept:", kept, err)
	}
	if report.Publish.Public || report.Publish.Name != "report.json" || !note.Publish.Public || note.Call != nil {
		t.Errorf("%+v, %+v", report.Publish, note.Publish)
	}
	if b, err := note.Publish.Bytes(env); err != nil || string(b) != "0.25 since 2026-01-02T03:04:05Z" {
		t.Errorf("%q, %v", b, err)
	}
	tools := m.Tools()
	if len(tools) != 2 || tools["acme.company"] == nil || tools["beta.phone"] == nil {
		t.Error("the secrets of tools that only `finish` calls must be known too:", tools)
	}
}

// Text is published as it is, bytes too, and everything else as JSON.
func TestPublishedContent(t *testing.T) {
	blob := string([]byte{0, 0xff, '\n', 0x80})
	env := aRun()
	env.Vars = map[string]any{"text": "grüße\n", "b64": base64.StdEncoding.EncodeToString([]byte(blob)), "list": []any{"<&>", 1.5, nil}}
	for source, want := range map[string]string{
		`"plain"`:                        "plain",
		`"${vars.text}"`:                 "grüße\n",
		`"${base64.decode(vars.b64)}"`:   blob,
		`"${vars.list}"`:                 "[\"<&>\",1.5,null]\n",
		`{a: "${run.completed}", b: x}`:  "{\"a\":3,\"b\":\"x\"}\n",
		`"${[1, 2].map(x, x * 2)}"`:      "[2,4]\n",
		`null`:                           "null\n",
		`"# ${run.name} ${vars.list}\n"`: "# leads [\"<&>\",1.5,null]\n",
		`""`:                             "",
	} {
		m, err := ParseMap("m", []byte("version: 1\nvars: {text: t, b64: b, list: []}\ncolumns: [{name: a, value: 1}]\nfinish: [{publish: {name: f, public: false, content: "+source+"}}]"), nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := m.Finish[0].Publish.Bytes(env); err != nil || string(got) != want {
			t.Errorf("%s gives %q, %v", source, got, err)
		}
	}
}

func TestPublishedContentIsBounded(t *testing.T) {
	m, err := ParseMap("m", []byte("version: 1\nvars: {b: ''}\ncolumns: [{name: a, value: 1}]\nfinish: [{publish: {name: f, public: false, content: '${base64.decode(vars.b)}'}}]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := aRun()
	env.Vars = map[string]any{"b": strings.Repeat("AAAA", MaxValueBytes/3+1)}
	_, err = m.Finish[0].Publish.Bytes(env)
	if err == nil {
		t.Error("more than the limit was taken")
	}
}

// A step more or less, or another word in one, is another map; and maps without `finish` are what they were.
func TestFinishIsPartOfTheDigest(t *testing.T) {
	src := string(readTestdata(t, "finish.yaml"))
	want := finishMap(t).Digest
	digests := map[string]bool{want: true}
	for _, change := range [][2]string{
		{"run.failed} failed", "run.failed} bad"}, {"result.id +", "result.id + \"\" +"}, {"run.id}\"}\n", "run.name}\"}\n"},
		{"name: report.json, public: false", "name: report.json, public: true"}, {"report.json", "report.txt"}, {"content: \"${run}\"", "content: \"${run.id}\""},
		{"  - publish: {name: report.json, public: false, content: \"${run}\"}\n", ""},
	} {
		changed := strings.Replace(src, change[0], change[1], 1)
		m, err := ParseMap("finish.yaml", []byte(changed), catalogue(t))
		if err != nil || changed == src {
			t.Fatal(change, err)
		}
		if digests[m.Digest] {
			t.Errorf("%q: does not change the digest", change[1])
		}
		digests[m.Digest] = true
	}
	const without = "444c685778cf0e5b87c8a6658de38219e1532a94182563aeb1d681b687e97556"
	if d := cmp.Diff(without, parse(t, digestMap).Digest); d != "" {
		t.Error("runs that were started before would be refused:", d)
	}
}

func TestFinishIsBounded(t *testing.T) {
	step := "\n  - {call: acme.company, with: {domain: d}}"
	base := "version: 1\ncolumns: [{name: a, value: 1}]\nfinish:"
	if _, err := ParseMap("m", []byte(base+strings.Repeat(step, MaxFinish)), catalogue(t)); err != nil {
		t.Error(err)
	}
	_, err := ParseMap("m", []byte(base+strings.Repeat(step, MaxFinish+1)), catalogue(t))
	want := Problems{{"m", 4 + MaxFinish, 5, "finish has 21 steps; at most 20 are possible", ""}}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Error(diff)
	}
}
