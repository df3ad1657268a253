package gateway

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sighted is a case for a row of the table: what shows it, and what must follow, worked out from what HTTP and the
// behaviours T1, T2, H14 and H15 say, and not from the table.
type sighted struct {
	on               situation
	status           int
	header, body     string
	sent             *SendError
	repeatable, once call.Outcome
	code             string
	charged          bool
	cost             int64
	tells            string // "", works, slow, until, cooldown
}

const price = 10_000

var sightings = []sighted{
	{on: egressDenied, sent: &SendError{Code: "EGRESS_DENIED"}, repeatable: call.Failed, once: call.Failed, code: "EGRESS_DENIED"},
	{on: badInput, sent: &SendError{Code: "BAD_REQUEST"}, repeatable: call.Failed, once: call.Failed, code: "BAD_INPUT"},
	{on: notSent, sent: &SendError{Code: "NOT_SENT"}, repeatable: call.Retry, once: call.Retry, code: "NOT_SENT"},
	{on: stoppedUnsent, sent: &SendError{Code: "CANCELLED"}, repeatable: call.Retry, once: call.Retry, code: "CANCELLED"},
	{on: stoppedSent, sent: &SendError{Code: "CANCELLED", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "CANCELLED", charged: true},
	{on: timedOut, sent: &SendError{Code: "TIMEOUT", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "TIMEOUT", charged: true, tells: "slow"},
	{on: connectionLost, sent: &SendError{Code: "CONNECTION_LOST", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "CONNECTION_LOST", charged: true},
	{on: connectionLost, sent: &SendError{Code: "SOMETHING_NEW", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "CONNECTION_LOST", charged: true},
	{on: bodyCut, status: 200, sent: &SendError{Code: "BODY_CUT", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "BODY_CUT", charged: true},
	{on: bodyTooLarge, status: 200, sent: &SendError{Code: "BODY_TOO_LARGE", Sent: true}, repeatable: call.Failed, once: call.Failed, code: "BODY_TOO_LARGE", tells: "works"},
	{on: otherServer, status: 500, sent: &SendError{Code: "BODY_TOO_LARGE", Sent: true}, repeatable: call.Retry, once: call.Unknown, code: "HTTP_500", charged: true},
	{on: redirected, status: 302, sent: &SendError{Code: "REDIRECT", Sent: true}, repeatable: call.Failed, once: call.Failed, code: "REDIRECT", tells: "works"},

	{on: limitedUntil, status: 429, header: "Retry-After: 7", repeatable: call.Held, once: call.Held, code: "HTTP_429", tells: "until"},
	{on: limitedUntil, status: 429, header: "X-Reset: 7", repeatable: call.Held, once: call.Held, code: "HTTP_429", tells: "until"},
	{on: limitedUntil, status: 429, header: "Retry-After: 7", sent: &SendError{Code: "BODY_CUT", Sent: true}, repeatable: call.Held, once: call.Held, code: "HTTP_429", tells: "until"},
	{on: limitedUntil, status: 503, header: "Retry-After: 7", repeatable: call.Held, once: call.Held, code: "HTTP_503", tells: "until"},
	{on: limited, status: 429, repeatable: call.Held, once: call.Held, code: "HTTP_429", tells: "cooldown"},
	{on: limited, status: 429, header: "Retry-After: soon", repeatable: call.Held, once: call.Held, code: "HTTP_429", tells: "cooldown"},
	{on: unauthorized, status: 401, body: "none", repeatable: call.Failed, once: call.Failed, code: "HTTP_401", tells: "works"},
	{on: forbidden, status: 403, repeatable: call.Failed, once: call.Failed, code: "HTTP_403", tells: "works"},
	{on: stalled, status: 408, repeatable: call.Retry, once: call.Unknown, code: "HTTP_408", charged: true, tells: "works"},
	{on: tooEarly, status: 425, repeatable: call.Retry, once: call.Retry, code: "HTTP_425", charged: true, tells: "works"},
	{on: tooMany, status: 413, repeatable: call.Failed, once: call.Failed, code: "HTTP_413", tells: "works"},
	{on: absentStatus, status: 404, body: "none", repeatable: call.Missing, once: call.Missing, tells: "works"},
	{on: otherClient, status: 404, repeatable: call.Failed, once: call.Failed, code: "HTTP_404", tells: "works"},
	{on: otherClient, status: 422, repeatable: call.Failed, once: call.Failed, code: "HTTP_422", tells: "works"},
	{on: otherClient, status: 451, repeatable: call.Failed, once: call.Failed, code: "HTTP_451", tells: "works"},
	{on: unimplemented, status: 501, repeatable: call.Failed, once: call.Failed, code: "HTTP_501"},
	{on: badVersion, status: 505, repeatable: call.Failed, once: call.Failed, code: "HTTP_505"},
	{on: otherServer, status: 500, body: "none", repeatable: call.Retry, once: call.Unknown, code: "HTTP_500", charged: true},
	{on: otherServer, status: 503, repeatable: call.Retry, once: call.Unknown, code: "HTTP_503", charged: true},
	{on: otherServer, status: 503, header: "X-Reset: 7", repeatable: call.Retry, once: call.Unknown, code: "HTTP_503", charged: true},
	{on: otherServer, status: 529, repeatable: call.Retry, once: call.Unknown, code: "HTTP_529", charged: true},
	{on: moved, status: 304, repeatable: call.Failed, once: call.Failed, code: "HTTP_304", tells: "works"},
	{on: unheardOf, status: 600, repeatable: call.Retry, once: call.Unknown, code: "HTTP_600", charged: true},
	{on: unheardOf, status: 199, repeatable: call.Retry, once: call.Unknown, code: "HTTP_199", charged: true},

	{on: result, status: 200, body: `{"x":1}`, repeatable: call.Result, once: call.Result, cost: price, tells: "works"},
	{on: result, status: 204, repeatable: call.Result, once: call.Result, cost: price, tells: "works"},
	{on: absent, status: 200, body: "none", repeatable: call.Missing, once: call.Missing, cost: price, tells: "works"},
	{on: failure, status: 200, body: "bad", repeatable: call.Failed, once: call.Failed, code: "FAILED_ANSWER", cost: price, tells: "works"},
	{on: unreadable, status: 200, header: "Content-Type: application/json", body: "<html>", repeatable: call.Retry, once: call.Unknown, code: "BROKEN_ANSWER", charged: true, cost: price, tells: "works"},
	{on: badResult, status: 200, body: `{"x": 123456789012345678901}`, header: "Content-Type: application/json", repeatable: call.Failed, once: call.Failed, code: "BAD_RESULT", cost: price, tells: "works"},
	{on: badResult, status: 200, body: `{"y": 1}`, repeatable: call.Failed, once: call.Failed, code: "BAD_RESULT", cost: price, tells: "works"},

	{on: noTool, repeatable: call.Failed, once: call.Failed, code: "UNKNOWN_TOOL"},
	{on: noSecret, repeatable: call.Failed, once: call.Failed, code: "SECRET_MISSING"},
	{on: secretSilent, repeatable: call.Retry, once: call.Retry, code: "SECRET_UNAVAILABLE"},
	{on: secretRefused, repeatable: call.Retry, once: call.Retry, code: "SECRET_UNAVAILABLE", charged: true},
	{on: clientRefused, repeatable: call.Failed, once: call.Failed, code: "AUTH_FAILED"},
	{on: tokenSilent, repeatable: call.Retry, once: call.Retry, code: "AUTH_UNAVAILABLE"},
	{on: tokenRefused, repeatable: call.Retry, once: call.Retry, code: "AUTH_UNAVAILABLE", charged: true},
	{on: renewed, repeatable: call.Held, once: call.Held, code: "HTTP_0"}, // TestT6RotationIsPickedUp has the whole of it
	{on: unread, repeatable: call.Held, once: call.Held, code: "HTTP_0"},  // TestT6ARefusalWhileTheStoreIsDown
	{on: gatewayLost, repeatable: call.Retry, once: call.Unknown, code: "GATEWAY_LOST", charged: true},
}

func (s sighted) job(t *testing.T, method string) *job {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte(`version: 1
providers:
  acme: {url: "https://acme.example", cooldown: 3s, resetHeaders: [x-reset]}
tools:
  acme.get: {method: `+method+`, path: /x, cost: 0.01, missing: '${body == "none"}', fail: '${body == "bad"}', result: '${body == null ? 0 : body.x}'}
  acme.many: {method: `+method+`, path: /x, query: {ids: "${inputs.map(i, i.id).join(',')}"}, batch: {size: 5, each: "${body}"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.on == tooMany {
		two := []map[string]any{{"id": "1"}, {"id": "2"}}
		return &job{tool: c.Tools["acme.many"], inputs: two, Attempt: call.Attempt{Number: 2, Inputs: make([]json.RawMessage, 2)}}
	}
	return &job{tool: c.Tools["acme.get"], inputs: []map[string]any{nil}, Attempt: call.Attempt{Number: 2}}
}

func (s sighted) classify(j *job) (call.Answer, *pacer.Observation) {
	switch {
	case s.on == gatewayLost:
		j.Tool = j.tool.Name
		return Lost(&mapspec.Catalogue{Tools: map[string]*mapspec.Tool{j.Tool: j.tool}}, j.Attempt, "why"), nil
	case s.status == 0 && s.sent == nil:
		return *s.on.conclude(j, "why"), nil
	}
	var res *Response
	if s.status != 0 {
		h := http.Header{}
		if name, v, ok := strings.Cut(s.header, ": "); ok {
			h.Set(name, v)
		}
		res = &Response{Status: s.status, Header: h, Body: []byte(s.body)}
	}
	if s.sent == nil {
		return classify(noon, j, res, nil)
	}
	broken := *s.sent
	broken.Response, broken.Message = res, "why"
	return classify(noon, j, nil, &broken)
}

func told(o *pacer.Observation) string {
	switch {
	case o == nil:
		return ""
	case o.Slow:
		return "slow"
	case !o.Limited:
		return "works"
	case o.Deadline.Equal(noon.Add(7 * time.Second)):
		return "until"
	case o.Deadline.IsZero() && o.Cooldown == 3*time.Second:
		return "cooldown"
	}
	return fmt.Sprintf("%+v", *o)
}

// T1, T2, H14, H15: every row of the table, for a call that may be repeated and for one that may not.
func TestEveryVerdict(t *testing.T) {
	shown := map[situation]bool{}
	for _, s := range sightings {
		shown[s.on] = true
		for method, outcome := range map[string]call.Outcome{"GET": s.repeatable, "POST": s.once} {
			name := fmt.Sprintf("%s: %s %d %q", s.on, method, s.status, s.header)
			a, o := s.classify(s.job(t, method))
			code := s.code
			if outcome == call.Unknown {
				code = "OUTCOME_UNKNOWN"
			}
			got, dispatched := "", s.status != 0 || s.on == gatewayLost || s.sent != nil && s.sent.Sent
			if a.Error != nil {
				got = a.Error.Code
				if a.Error.Message == "" || a.Error.Status != s.status || a.Error.Attempt != 3 || a.Error.Dispatched != dispatched {
					t.Errorf("%s: the error is %+v", name, a.Error)
				}
			}
			if earlier := a.Error != nil && strings.Contains(a.Error.Message, "earlier attempts may have arrived"); earlier != (got != "" && !dispatched) {
				t.Errorf("%s: the third attempt says %q", name, a.Error.Message)
			}
			if a.Outcome != outcome || got != code || a.Status != s.status || a.Dispatched != dispatched ||
				a.Charged != s.charged || a.CostMicros != s.cost || (s.status != 0 || s.sent != nil) && told(o) != s.tells {
				t.Errorf("%s: %+v, error %v, tells %q", name, a, a.Error, told(o))
			}
		}
	}
	for _, v := range verdicts {
		if !shown[v.on] {
			t.Errorf("no case shows %q", v.on)
		}
	}
	if len(verdictOn) != len(verdicts) {
		t.Error("a situation is in the table twice")
	}
}

var update = flag.Bool("update", false, "write the table of verdicts into docs/errors.md")

// docs/errors.md shows the table as it is. `go test ./internal/core/gateway -run Documented -update` writes it.
func TestVerdictsAreDocumented(t *testing.T) {
	const name, begin, end = "../../../docs/errors.md", "<!-- verdicts -->\n", "<!-- end of verdicts -->"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the place of the table is gone")
	}
	want := documented()
	if have == want {
		return
	}
	if !*update {
		t.Fatal("the table is not up to date; run this test with -update")
	}
	if err := os.WriteFile(name, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func documented() string {
	var out strings.Builder
	out.WriteString("| what was seen | code | repeatable calls | others | charges | what the pacer is told |\n|---|---|---|---|---|---|\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, v := range verdicts {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", v.on, code(v.code), v.repeatable, v.once, v.charges, v.tells)
	}
	return out.String()
}
