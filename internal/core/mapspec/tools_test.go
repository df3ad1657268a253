package mapspec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProviderAsDeclared(t *testing.T) {
	cat := catalogue(t)
	got := *cat.Providers["acme"]
	if got.URL.String() != "https://api.acme.example/v1" {
		t.Error(got.URL)
	}
	got.URL = nil
	want := Provider{
		Name: "acme", Auth: Auth{Kind: AuthHeader, Name: "Authorization", Format: "Bearer ${secret}", Secret: "env:ACME_KEY"},
		Limits:      []Limit{{Rate: 20, Per: time.Second}, {Rate: 600, Per: time.Minute, Burst: 100}},
		Concurrency: 10, NoProgress: 45 * time.Minute, Cooldown: 5 * time.Second, ResetHeaders: []string{"X-Ratelimit-Reset"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]Auth{
		"alpha": {Kind: AuthQuery, Name: "api_key", Secret: "ssm:/alpha/key"},
		"beta":  {Kind: AuthBasic, User: "u", Secret: "secretsmanager:beta#password"},
		"gamma": {Kind: AuthOAuth2, TokenURL: "https://gamma.example/token", ClientID: "c", Scopes: []string{"a", "b"}, Secret: "env:GAMMA"},
	} {
		if diff := cmp.Diff(want, cat.Providers[name].Auth); diff != "" {
			t.Error(name, diff)
		}
	}
}

func TestH17ProviderWithoutLimitsGetsTheDefault(t *testing.T) {
	p := tool(t, "{}").Provider
	if diff := cmp.Diff([]Limit{{Rate: 5, Per: time.Second}}, p.Limits); diff != "" || p.Concurrency != 4 {
		t.Error(diff, p.Concurrency)
	}
	if p.NoProgress != 30*time.Minute || p.Cooldown != 10*time.Second || p.AllowPrivate || p.Auth.Kind != AuthNone {
		t.Errorf("%+v", p)
	}
}

func TestToolDefaults(t *testing.T) {
	for method, idempotent := range map[string]bool{"GET": true, "HEAD": true, "PUT": true, "DELETE": true, "POST": false, "PATCH": false} {
		tl := tool(t, "method: "+method)
		if tl.Idempotent != idempotent || tl.Repeatable() != idempotent {
			t.Errorf("%s: idempotent is %v", method, tl.Idempotent)
		}
		if tl.Timeout != 30*time.Second || tl.MaxBody != 5_000_000 || tl.Attempts != 4 || tl.Cache != 0 || tl.CostMicros != 0 || tl.Input != nil {
			t.Errorf("%+v", tl)
		}
	}
	if tl := tool(t, ""); tl.Method != "GET" {
		t.Errorf("a tool without description is %s", tl.Method)
	}
	if !tool(t, "{method: POST, fence: Idempotency-Key}").Repeatable() || !tool(t, "{method: POST, idempotent: true}").Repeatable() {
		t.Error("a fence or a declaration makes a POST repeatable")
	}
}

func TestToolAsDeclared(t *testing.T) {
	tl := catalogue(t).Tools["acme.company"]
	if tl.Timeout != 20*time.Second || tl.MaxBody != 5_000_000 || tl.Cache != 30*24*time.Hour || tl.CostMicros != 10_000 ||
		tl.Fence != "Idempotency-Key" || tl.Attempts != 4 || tl.Body != nil || tl.Path.Source() != "/companies/{domain}" {
		t.Errorf("%+v", tl)
	}
	if diff := cmp.Diff([]Param{{Name: "domain", Type: "string"}}, tl.Input); diff != "" {
		t.Error(diff)
	}
}

func TestInterpret(t *testing.T) {
	tl := catalogue(t).Tools["acme.company"]
	company := map[string]any{"name": "A"}
	for _, c := range []struct {
		name            string
		status          int
		body            any
		want            any
		missing, failed bool
	}{
		{"a result", 200, map[string]any{"company": company}, company, false, false},
		{"an error that is null", 200, map[string]any{"company": company, "error": nil}, company, false, false},
		{"no such thing", 404, nil, nil, true, false},
		{"a failure that says 200", 200, map[string]any{"error": "quota"}, nil, false, true},
	} {
		got, missing, failed, err := tl.Interpret(c.status, nil, c.body, nil)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || missing != c.missing || failed != c.failed {
			t.Errorf("%s: %v %v %v %s", c.name, missing, failed, err, diff)
		}
	}
	_, _, _, err := tl.Interpret(200, nil, map[string]any{"other": 1}, nil)
	wantError(t, err, "tool acme.company: result: ${body.company}: no such key: company")
}

// Providers leave out what does not apply; a condition on it is false rather than an error.
func TestAbsentFieldsAreNullInMissingAndFail(t *testing.T) {
	for _, c := range []struct {
		condition string
		body      any
		want      bool
	}{
		{"${body.error != null}", map[string]any{}, false},
		{"${body.error != null}", nil, false},
		{"${body.error != null}", "text", false},
		{"${body.error != null}", map[string]any{"error": "x"}, true},
		{"${body.error.code == 7}", map[string]any{}, false},
		{"${body.error.code == 7}", map[string]any{"error": map[string]any{"code": int64(7)}}, true},
		{"${body.ok != true}", map[string]any{}, true},
		{"${body.failed}", map[string]any{}, false},
		{"${body.failed}", map[string]any{"failed": true}, true},
		{"${has(body.a.b)}", map[string]any{}, false},
		{"${!has(body.a.b)}", map[string]any{}, true},
		{"${has(body.a.b)}", map[string]any{"a": map[string]any{"b": nil}}, true},
		{"${body.errors[0] != null}", map[string]any{"errors": []any{}}, false},
		{"${body.errors[0].code == 1}", map[string]any{"errors": []any{map[string]any{"code": int64(1)}}}, true},
		{`${headers["x-error"] == "1"}`, nil, false},
		{"${body.list.exists(x, x.bad == true)}", map[string]any{"list": []any{map[string]any{}, map[string]any{"bad": true}}}, true},
	} {
		_, _, failed, err := tool(t, "fail: '"+c.condition+"'").Interpret(200, nil, c.body, nil)
		if err != nil || failed != c.want {
			t.Errorf("%s of %v: %v, %v", c.condition, c.body, failed, err)
		}
	}
	_, _, _, err := tool(t, "fail: ${body.n > 3}").Interpret(200, nil, map[string]any{"n": "text"}, nil)
	wantError(t, err, "fail: ${body.n > 3}: the types do not fit")
	_, _, _, err = tool(t, "missing: ${body.n}").Interpret(200, nil, map[string]any{"n": "text"}, nil)
	wantError(t, err, "missing: ${body.n}: it must give true or false, not text")
}

func TestCheckInput(t *testing.T) {
	tl := tool(t, `input: {s: string, n: number, i: integer, b: boolean, l: list, m: map, a: any, "o?": integer}`)
	good := map[string]any{"s": "", "n": int64(1), "i": int64(2), "b": false, "l": []any{}, "m": map[string]any{}, "a": nil}
	got, err := tl.CheckInput(good)
	if err != nil {
		t.Fatal(err)
	}
	if v, there := got["o"]; !there || v != nil || len(good) != 7 {
		t.Errorf("an absent optional input must read as null in a copy: %v, %v", got, good)
	}
	_, err = tl.CheckInput(map[string]any{"s": nil, "n": "1", "i": 1.5, "b": "yes", "l": map[string]any{}, "m": []any{}, "oo": 1})
	for _, want := range []string{
		"tool p.t: ", "input `s` must be string, not null", "input `n` must be number, not text: convert it with double(...)",
		"input `i` must be integer, not a number", "input `b` must be boolean, not text", "input `l` must be list, not a map",
		"input `m` must be map, not a list", "there is no input `oo`", "input `a` (any) is missing",
	} {
		wantError(t, err, want)
	}
	_, err = tl.CheckInput(map[string]any{"i": "7"})
	wantError(t, err, "convert it with int(...)")
	_, err = tool(t, "input: {domain: string}").CheckInput(map[string]any{"domian": "x"})
	wantError(t, err, "did you mean `domain`?")
	if got, err := tool(t, "{}").CheckInput(map[string]any{"x": 1}); err != nil || got["x"] != 1 {
		t.Errorf("a tool without declared inputs takes any: %v, %v", got, err)
	}
	if _, err := tool(t, "input: {}").CheckInput(map[string]any{"x": 1}); err == nil {
		t.Error("a tool that declares no inputs took one")
	}
}

func TestAbsentOptionalInputsAreNotSent(t *testing.T) {
	req, err := catalogue(t).Tools["alpha.phone"].Request(map[string]any{"domain": "x"})
	if err != nil || !strings.HasSuffix(req.URL, "/phone?domain=x") {
		t.Error(req, err)
	}
}
