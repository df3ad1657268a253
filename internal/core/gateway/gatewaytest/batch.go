package gatewaytest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
)

// many is what the tools have in common that make one request of many calls.
const many = `input: {what: string}, cost: 0.01, missing: "${body == null}", fail: "${has(body.error)}", result: "${body.v}",
    batch: {size: 100, body: {whats: "${inputs.map(i, i.what.lowerAscii())}"}, each: "${body.items}", tooLarge: "${status == 400 && body.code == 'too many'}"}`

// whole is what the provider answers to a request for many: the name of an answer that one of the calls asks for, or
// "items" and a list of answers to each.
func whole(req *gateway.Request) string {
	var body struct{ Whats []string }
	if err := json.Unmarshal(req.Body, &body); err != nil {
		return "400"
	}
	items := []any{}
	for _, what := range body.Whats {
		if name, ok := strings.CutPrefix(what, "all:"); ok {
			return name
		}
		switch {
		case what == "none":
			items = append(items, nil)
		case what == "bad":
			items = append(items, map[string]any{"error": "no " + what})
		case what == "empty":
			items = append(items, map[string]any{})
		case what != "forgotten":
			items = append(items, map[string]any{"v": what})
		}
	}
	b, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return "500"
	}
	return "items" + string(b)
}

// together is an attempt for many calls.
func together(tool string, whats ...string) call.Attempt {
	a := call.Attempt{Tool: tool, RequestID: "r-many"}
	for _, what := range whats {
		a.Inputs = append(a.Inputs, json.RawMessage(fmt.Sprintf(`{"what":%q}`, what)))
	}
	return a
}

// batches: a request for many calls is one request, and each of its calls gets what is its own.
func batches(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	got := settle(t, g, together("acme.many", "a", "none", "b", "bad", "empty", "a"), attempt("acme.many", "alone"))
	if n := len(p.Requests()); n != 2 {
		t.Fatalf("%d requests, want 2", n)
	}
	for i, a := range got {
		if a.Outcome != call.Result || !a.Dispatched || a.Status != 200 || a.CostMicros != 10_000 || a.Scope == "" {
			t.Errorf("request %d: %+v", i, a)
		}
	}
	if string(got[1].Value) != `"alone"` || got[1].Members != nil {
		t.Errorf("a call that travels alone: %+v", got[1])
	}
	want := []struct {
		outcome     call.Outcome
		value, code string
	}{{call.Result, `"a"`, ""}, {call.Missing, "", ""}, {call.Result, `"b"`, ""}, {call.Failed, "", "FAILED_ANSWER"}, {call.Failed, "", "BAD_RESULT"}, {call.Result, `"a"`, ""}}
	if len(got[0].Members) != len(want) {
		t.Fatalf("%d answers for %d calls", len(got[0].Members), len(want))
	}
	for i, m := range got[0].Members {
		code := ""
		if m.Error != nil {
			code = m.Error.Code
		}
		if m.Outcome != want[i].outcome || string(m.Value) != want[i].value || code != want[i].code || m.CostMicros != 0 || !m.Dispatched {
			t.Errorf("call %d: %+v %q, want %+v", i, m, code, want[i])
		}
	}
	if e := got[0].Members[3].Error; e != nil && (!strings.Contains(e.Message, "no bad") || strings.Contains(e.Message, `"b"`)) {
		t.Errorf("a row is told of another's answer, or not of its own: %s", e.Message)
	}
}

// wholes: what an exchange as a whole comes to holds for all of its calls, whose tool says what may be repeated.
func wholes(t *testing.T, open Open) {
	tests := []struct {
		tool, what string
		outcome    call.Outcome
		code       string
		dispatched bool
		cost       int64
		split      bool
	}{
		{"acme.many", "all:500", call.Retry, "HTTP_500", true, 0, false},
		{"acme.many", "all:timeout", call.Retry, "TIMEOUT", true, 0, false},
		{"acme.many", "all:422", call.Failed, "HTTP_422", true, 0, false},
		{"acme.many", "all:429", call.Held, "HTTP_429", true, 0, false},
		{"acme.many", "all:notsent", call.Retry, "NOT_SENT", false, 0, false},
		{"acme.many", "all:broken", call.Retry, "BROKEN_ANSWER", true, 10_000, false},
		{"acme.many", "forgotten", call.Failed, "BAD_RESULT", true, 10_000, false},
		{"acme.many", "all:empty", call.Failed, "BAD_RESULT", true, 10_000, false},
		{"acme.many", "all:413", call.Failed, "HTTP_413", true, 0, true},
		{"acme.many", "all:toomany", call.Failed, "HTTP_400", true, 0, true},
		{"acme.many", "all:400", call.Failed, "HTTP_400", true, 0, false},
		{"acme.many", "all:large", call.Failed, "BODY_TOO_LARGE", true, 0, true},
		{"acme.manyposts", "all:500", call.Unknown, "OUTCOME_UNKNOWN", true, 0, false},
		{"acme.manyposts", "all:lost", call.Unknown, "OUTCOME_UNKNOWN", true, 0, false},
		{"acme.manyposts", "all:413", call.Failed, "HTTP_413", true, 0, true},
		{"acme.manyposts", "all:large", call.Failed, "BODY_TOO_LARGE", true, 0, false},
		{"acme.manyfenced", "all:lost", call.Unknown, "OUTCOME_UNKNOWN", true, 0, false}, // without its fence
	}
	for _, tt := range tests {
		g := open(t, Catalogue(t), &Provider{}) // a provider that says "wait" says it to all that follow
		a := settle(t, g, together(tt.tool, "a", tt.what, "b"))[0]
		code := ""
		if a.Error != nil {
			code = a.Error.Code
		}
		if a.Outcome != tt.outcome || code != tt.code || a.Dispatched != tt.dispatched || a.CostMicros != tt.cost || a.Split != tt.split || a.Members != nil {
			t.Errorf("%s %s: got %s %q dispatched=%v cost=%d split=%v, %d answers", tt.tool, tt.what, a.Outcome, code, a.Dispatched, a.CostMicros, a.Split, len(a.Members))
		}
	}
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	fenced := together("acme.manyfenced", "all:lost", "b")
	fenced.Fence = "key-1"
	if a := settle(t, g, fenced)[0]; a.Outcome != call.Retry || p.Requests()[0].Header.Get("Idempotency-Key") != "key-1" {
		t.Errorf("fenced: %+v", a)
	}
	if a := settle(t, g, attempt("acme.many", "all:413"))[0]; a.Outcome != call.Failed || a.Split || a.Error.Code != "HTTP_413" {
		t.Errorf("a call alone that is too large: %+v", a)
	}
}

// refusals: a batch that cannot be built may come apart; one of a tool that has no batches cannot be sent; a batch takes one
// permit, whatever it carries.
func refusals(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	bad := together("acme.many", "a", "b")
	bad.Inputs[1] = json.RawMessage(`{}`)
	got := settle(t, g, bad, together("acme.get", "a", "b"), together("acme.none", "a", "b"))
	for i, want := range []struct {
		code  string
		split bool
	}{{"BAD_INPUT", true}, {"BAD_INPUT", true}, {"UNKNOWN_TOOL", false}} {
		if a := got[i]; a.Outcome != call.Failed || a.Dispatched || a.Error.Code != want.code || a.Split != want.split {
			t.Errorf("%d: %+v", i, a)
		}
	}
	start := time.Now()
	got = execute(t, g, together("slow.many", "a", "b", "c"), together("slow.many", "d", "e"), together("slow.many", "f", "g"))
	for i, want := range []call.Outcome{call.Result, call.Result, call.Refused} {
		if got[i].Outcome != want {
			t.Fatalf("batch %d of a tool that is allowed 2 requests an hour: %+v, want %s", i, got[i], want)
		}
	}
	if wait := got[2].Until.Sub(start); got[2].Dispatched || got[2].Members != nil || wait < time.Hour {
		t.Errorf("the third batch: %+v", got[2])
	}
	if n := len(p.Requests()); n != 2 {
		t.Errorf("%d requests, allowed are 2", n)
	}
}
