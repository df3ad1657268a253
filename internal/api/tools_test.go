package api

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/pacer"
)

func TestACallOfATool(t *testing.T) {
	w := newWorld(t)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	w.tools.answer = func(_ context.Context, a call.Attempt) (call.Answer, error) {
		switch a.Tool {
		case "a.held":
			return call.Answer{Outcome: call.Held, Until: until, Dispatched: true, Status: 429,
				Error: &call.Error{Code: "HTTP_429", Message: "slow down"}, Why: call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}}, nil
		case "a.broken":
			return call.Answer{}, errors.New("the store is away")
		}
		return call.Answer{Outcome: call.Result, Value: a.Input, Dispatched: true, Status: 200, CostMicros: 10, Why: call.Why{Reason: call.RateLimit}}, nil // the scope waits, and not the call
	}
	status, out := w.ask("POST", "/tools/a.get", `{"tools":"text","with":{"x":[1,"two"]}}`)
	want := map[string]any{"outcome": "result", "value": map[string]any{"x": []any{1.0, "two"}}, "dispatched": true, "status": 200.0, "costMicros": 10.0}
	if diff := cmp.Diff(want, out); status != 200 || diff != "" {
		t.Error(status, diff)
	}
	if _, out = w.ask("POST", "/tools/a.held", `{"run":"r"}`); out["outcome"] != "held" || out["until"] != until.Format(time.RFC3339) ||
		out["error"].(map[string]any)["code"] != "HTTP_429" || out["reason"] != "retryAfter" || out["code"] != "HTTP_429" {
		t.Errorf("%v", out)
	}
	if diff := cmp.Diff([]string{"|tools.yaml|text", "r|tools.yaml|"}, w.tools.of); diff != "" || w.tools.closed != 2 {
		t.Error(diff, w.tools.closed)
	}
	w.refused(500, "INTERNAL", "went wrong", "POST", "/tools/a.broken", `{"run":"r"}`)
	bad := func(text, body string) {
		t.Helper()
		w.refused(400, "BAD_REQUEST", text, "POST", "/tools/a.get", body)
	}
	bad("either `run`", `{}`)
	bad("either `run`", `{"run":"r","tools":"x"}`)
	bad("`with` must be an object", `{"run":"r","with":[1]}`)
	bad("my.yaml:1:1: not a tool file", `{"tools":"bad","toolsName":"my.yaml"}`)
	bad(`unknown field "input"`, `{"run":"r","input":{}}`)
}

// Two requests of one key are one call to a provider that knows fences, others are not.
func TestTheKeyOfARequestIsTheFence(t *testing.T) {
	w := newWorld(t)
	w.tools.answer = func(context.Context, call.Attempt) (call.Answer, error) {
		return call.Answer{Outcome: call.Missing, Dispatched: true}, nil
	}
	for _, key := range []string{"a", "a", "b", "", ""} {
		w.ask("POST", "/tools/a.post", `{"run":"r"}`, header("Idempotency-Key", key))
	}
	fence := map[string]int{}
	for _, a := range w.tools.asked {
		fence[a.Fence]++
	}
	if first := w.tools.asked[0].Fence; first == "" || fence[first] != 2 || len(fence) != 4 {
		t.Errorf("%v", fence)
	}
}

// A call that takes too long is not said to have failed.
func TestT2ACallWithoutAnAnswerInTimeMayHaveBeenMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tools.patience = 25 * time.Second
		w.tools.answer = func(ctx context.Context, _ call.Attempt) (call.Answer, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // who executes it may take notice late
			return call.Answer{}, ctx.Err()
		}
		began := time.Now()
		w.refused(504, "NO_ANSWER", "may have been made", "POST", "/tools/a.get", `{"run":"r","with":{}}`)
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("answered after %v", took)
		}
		time.Sleep(time.Minute)
	})
}

func TestProvidersAreShownAsTheyStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := pacer.New(w.Store.Table, "one")
		want := pacer.Want{N: 3, Rules: []pacer.Rule{{Rate: 100, Per: time.Minute}}, Concurrency: 5}
		if g, err := p.Acquire(t.Context(), "acme-0123456789ab", want); err != nil || len(g.Permits) != 3 {
			t.Fatal(g, err)
		}
		until, err := p.Report(t.Context(), "acme-0123456789ab", pacer.Observation{Limited: true, Status: 429, Deadline: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		_, out := w.ask("GET", "/providers", "")
		list, _ := out["providers"].([]any)
		if len(list) != 1 {
			t.Fatalf("%v", out)
		}
		got := list[0].(map[string]any)
		delete(got, "lastGrant")
		held, err := time.Parse(time.RFC3339Nano, got["heldUntil"].(string))
		if err != nil || !held.Equal(until) {
			t.Errorf("held until %v, want %v", held, until)
		}
		delete(got, "heldUntil")
		if diff := cmp.Diff(map[string]any{"scope": "acme-0123456789ab", "provider": "acme", "refusals": 0.0, "reason": "retryAfter", "code": "HTTP_429", "leased": 3.0, "processes": 1.0,
			"limits": []any{map[string]any{"rate": 100.0, "perMs": 60_000.0, "burst": 100.0, "recent": 3.0}}}, got); diff != "" {
			t.Error(diff)
		}
		w.refused(400, "BAD_REQUEST", `"x"`, "GET", "/providers?x=1", "")
	})
}

func FuzzRequests(f *testing.F) {
	f.Add("POST", "/runs", `{"map":"version: 1","rows":[{"x":1}]}`)
	f.Add("GET", "/runs/x/export?format=csv", "")
	f.Add("GET", "/runs/x/rows?cursor=1&limit=2", "")
	f.Add("POST", "/tools/a.b", `{"run":"r","with":{}}`)
	f.Add("POST", "/runs/x/resume", `{"budget":{"calls":1}}`)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		w := newWorld(t)
		w.tools.answer = func(context.Context, call.Attempt) (call.Answer, error) {
			return call.Answer{Outcome: call.Missing}, nil
		}
		status, out := w.fuzzed(method, target, body)
		if _, err := json.Marshal(out); err != nil || status >= 500 {
			t.Errorf("%d %v %v", status, out, err)
		}
	})
}
