package mapspec

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const batched = `{method: POST, path: /companies, input: {domain: string, "lang?": string}, missing: "${body == null}", fail: "${body.error != null}", result: "${body.name}",
  batch: {size: 50, body: {domains: "${inputs.map(i, i.domain)}", langs: "${inputs.map(i, i.lang)}"}, each: "${body.companies}", tooLarge: "${status == 400 && body.code == 'too_many'}"}}`

func TestBatchIsOneRequestForManyCalls(t *testing.T) {
	tl := tool(t, batched)
	inputs := []map[string]any{{"domain": "a.example"}, {"domain": "b\"}", "lang": "de"}}
	req, err := tl.RequestOf(inputs)
	if err != nil || req.Method != http.MethodPost || string(req.Body) != `{"domains":["a.example","b\"}"],"langs":[null,"de"]}` {
		t.Errorf("%+v, %s, %v", req, req.Body, err)
	}
	one, err := tl.Request(inputs[0])
	if err != nil || string(one.Body) != `{"domains":["a.example"],"langs":[null]}` {
		t.Errorf("a single call sends %s, %v", one.Body, err)
	}
}

func TestBatchPartsAreInOrder(t *testing.T) {
	tl := tool(t, batched)
	inputs := []map[string]any{{"domain": "a"}, {"domain": "b"}, {"domain": "c"}}
	a, b := map[string]any{"name": "A"}, map[string]any{"error": "gone"}
	parts, err := tl.Parts(200, nil, map[string]any{"companies": []any{a, b, nil}}, inputs)
	if diff := cmp.Diff([]any{a, b, nil}, parts); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	for i, want := range []struct {
		result        any
		missing, fail bool
	}{{"A", false, false}, {nil, false, true}, {nil, true, false}} {
		got, missing, fail, err := tl.Interpret(200, nil, parts[i], inputs[i])
		if err != nil || got != want.result || missing != want.missing || fail != want.fail {
			t.Errorf("part %d: %v %v %v %v", i, got, missing, fail, err)
		}
	}
}

// An answer whose parts cannot be told apart is an error, never a guess.
func TestBatchWithAWrongNumberOfPartsIsAnError(t *testing.T) {
	tl := tool(t, batched)
	inputs := []map[string]any{{"domain": "a"}, {"domain": "b"}}
	for _, body := range []any{
		map[string]any{"companies": []any{nil}}, map[string]any{"companies": []any{nil, nil, nil}}, map[string]any{"companies": nil},
		map[string]any{"companies": map[string]any{"a": 1, "b": 2}}, map[string]any{}, nil, "text",
	} {
		if parts, err := tl.Parts(200, nil, body, inputs); err == nil {
			t.Errorf("%v gave %v", body, parts)
		}
	}
	_, err := tl.Parts(200, nil, map[string]any{"companies": []any{nil}}, inputs)
	wantError(t, err, "tool p.t: batch.each gave 1 entries for 2 calls: it must give one for each call, in order, and null where there is nothing")
}

func TestBatchTooLargeAsDeclared(t *testing.T) {
	tl := tool(t, batched)
	inputs := []map[string]any{{"domain": "a"}}
	for _, c := range []struct {
		status int
		body   any
		want   bool
	}{
		{400, map[string]any{"code": "too_many"}, true}, {400, map[string]any{"code": "bad"}, false}, {400, nil, false}, {200, map[string]any{"code": "too_many"}, false},
	} {
		if got := tl.TooLarge(c.status, nil, c.body, inputs); got != c.want {
			t.Errorf("%d %v: %v", c.status, c.body, got)
		}
	}
}

// What a batch asks, and how its answer is divided, belongs to the meaning of a call; how many go together does not.
func TestBatchDigest(t *testing.T) {
	digest := func(batch string) string {
		return tool(t, "{method: POST, path: /x, "+batch+"}").Digest
	}
	with := digest(`batch: {size: 5, body: "${inputs}", each: "${body.a}"}`)
	if with != digest(`batch: {size: 9, body: "${inputs}", each: "${body.a}", tooLarge: "${status == 400}"}`) {
		t.Error("the size is part of the meaning")
	}
	for _, other := range []string{`batch: {size: 5, body: "${inputs}", each: "${body.b}"}`, `batch: {size: 5, body: ["${inputs}"], each: "${body.a}"}`, `body: 1`} {
		if with == digest(other) {
			t.Errorf("%s has the same meaning", other)
		}
	}
}
