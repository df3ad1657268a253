package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
)

// Open returns a gateway with an empty pacer state that reaches the sender with the catalogue and with Secrets.
type Open func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway

// Run checks that what open returns keeps the contract of call.Gateway.
func Run(t *testing.T, open Open) {
	RunBatched(t, open)
	t.Run("StreamsAnswers", func(t *testing.T) { streams(t, open) })
	t.Run("T4ConcurrencyRefusesAtOnce", func(t *testing.T) { concurrency(t, open) })
}

// RunBatched is Run for gateways over a request and its response: the answers of a batch are known together.
func RunBatched(t *testing.T, open Open) {
	t.Run("Outcomes", func(t *testing.T) { outcomes(t, open) })
	t.Run("ResultIsCanonical", func(t *testing.T) { canonical(t, open) })
	t.Run("DeliversExactlyOnce", func(t *testing.T) { exactlyOnce(t, open) })
	t.Run("BatchIsOneRequest", func(t *testing.T) { batches(t, open) })
	t.Run("BatchAsAWhole", func(t *testing.T) { wholes(t, open) })
	t.Run("BatchRefused", func(t *testing.T) { refusals(t, open) })
	t.Run("H13HeldCarriesItsDeadline", func(t *testing.T) { held(t, open) })
	t.Run("H14BareRefusalCoolsDown", func(t *testing.T) { bare(t, open) })
	t.Run("T4RefusalsAreNotDispatched", func(t *testing.T) { refused(t, open) })
	t.Run("T4ConcurrencyRefuses", func(t *testing.T) { crowded(t, open) })
	t.Run("T2FenceIsCarried", func(t *testing.T) { fence(t, open) })
	t.Run("R10CancelledBeforeTheStart", func(t *testing.T) { cancelledBefore(t, open) })
	t.Run("R10CancelledExchange", func(t *testing.T) { cancelledDuring(t, open) })
	t.Run("T6SecretsStayInside", func(t *testing.T) { secrets(t, open) })
}

func attempt(tool, what string) call.Attempt {
	input := json.RawMessage(`{}`)
	if what != "" {
		input = json.RawMessage(fmt.Sprintf(`{"what":%q}`, what))
	}
	return call.Attempt{Tool: tool, Input: input, RequestID: "r-" + what}
}

// execute runs a batch and fails unless every attempt was answered exactly once by the time Execute returned.
func execute(t *testing.T, g call.Gateway, batch ...call.Attempt) []call.Answer {
	t.Helper()
	var mu sync.Mutex
	answers, times := make([]call.Answer, len(batch)), make([]int, len(batch))
	err := g.Execute(t.Context(), batch, func(i int, a call.Answer) {
		mu.Lock()
		defer mu.Unlock()
		answers[i] = a
		times[i]++
	})
	if err != nil {
		t.Fatalf("Execute: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, n := range times {
		if n != 1 {
			t.Fatalf("attempt %d was answered %d times", i, n)
		}
	}
	return answers
}

// settle is execute for scopes that are practically not limited: on a machine that is busy with other things permits may
// go void unused, and the attempt is refused then, and made again.
func settle(t *testing.T, g call.Gateway, batch ...call.Attempt) []call.Answer {
	t.Helper()
	answers := execute(t, g, batch...)
	for i := range answers {
		for again := 0; answers[i].Outcome == call.Refused && again < 20; again++ {
			answers[i] = execute(t, g, batch[i])[0]
		}
	}
	return answers
}

func outcomes(t *testing.T, open Open) {
	tests := []struct {
		tool, what string
		outcome    call.Outcome
		code       string
		dispatched bool
		cost       int64
	}{
		{"acme.get", "ok", call.Result, "", true, 10_000},
		{"acme.get", "404", call.Missing, "", true, 0},
		{"acme.get", "failure", call.Failed, "FAILED_ANSWER", true, 10_000},
		{"acme.get", "broken", call.Retry, "BROKEN_ANSWER", true, 10_000},
		{"acme.get", "huge", call.Failed, "BAD_RESULT", true, 10_000},
		{"acme.get", "301", call.Failed, "HTTP_301", true, 0},
		{"acme.get", "400", call.Failed, "HTTP_400", true, 0},
		{"acme.get", "401", call.Failed, "HTTP_401", true, 0},
		{"acme.get", "403", call.Failed, "HTTP_403", true, 0},
		{"acme.get", "422", call.Failed, "HTTP_422", true, 0},
		{"acme.get", "408", call.Retry, "HTTP_408", true, 0},
		{"acme.get", "425", call.Retry, "HTTP_425", true, 0},
		{"acme.get", "500", call.Retry, "HTTP_500", true, 0},
		{"acme.get", "501", call.Failed, "HTTP_501", true, 0},
		{"acme.get", "503", call.Retry, "HTTP_503", true, 0},
		{"acme.get", "notsent", call.Retry, "NOT_SENT", false, 0},
		{"acme.get", "malformed", call.Failed, "BAD_INPUT", false, 0},
		{"acme.get", "timeout", call.Retry, "TIMEOUT", true, 0},
		{"acme.get", "lost", call.Retry, "CONNECTION_LOST", true, 0},
		{"acme.get", "cut", call.Retry, "BODY_CUT", true, 0},
		{"acme.get", "large", call.Failed, "BODY_TOO_LARGE", true, 0},
		{"acme.get", "redirect", call.Failed, "REDIRECT", true, 0},
		{"acme.get", "egress", call.Failed, "EGRESS_DENIED", false, 0},
		{"acme.get", "", call.Failed, "BAD_INPUT", false, 0},
		{"acme.none", "ok", call.Failed, "UNKNOWN_TOOL", false, 0},
		{"acme.post", "ok", call.Result, "", true, 0},
		{"acme.post", "empty", call.Result, "", true, 0},
		{"acme.post", "text", call.Result, "", true, 0},
		{"acme.post", "404", call.Failed, "HTTP_404", true, 0},
		{"acme.post", "408", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
		{"acme.post", "425", call.Retry, "HTTP_425", true, 0},
		{"acme.post", "500", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
		{"acme.post", "501", call.Failed, "HTTP_501", true, 0},
		{"acme.post", "broken", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
		{"acme.post", "notsent", call.Retry, "NOT_SENT", false, 0},
		{"acme.post", "timeout", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
		{"acme.post", "lost", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
		{"acme.post", "cut", call.Unknown, "OUTCOME_UNKNOWN", true, 0},
	}
	g := open(t, Catalogue(t), &Provider{})
	batch := make([]call.Attempt, len(tests))
	for i, tt := range tests {
		batch[i] = attempt(tt.tool, tt.what)
	}
	for i, a := range settle(t, g, batch...) {
		tt, code := tests[i], ""
		if a.Error != nil {
			code = a.Error.Code
		}
		if a.Outcome != tt.outcome || code != tt.code || a.Dispatched != tt.dispatched || a.CostMicros != tt.cost {
			t.Errorf("%s %s: got %s %q dispatched=%v cost=%d, want %s %q dispatched=%v cost=%d",
				tt.tool, tt.what, a.Outcome, code, a.Dispatched, a.CostMicros, tt.outcome, tt.code, tt.dispatched, tt.cost)
		}
		if a.Error != nil && a.Error.Message == "" {
			t.Errorf("%s %s: an error without a message", tt.tool, tt.what)
		}
	}
}

func canonical(t *testing.T, open Open) {
	g := open(t, Catalogue(t), &Provider{})
	got := settle(t, g, attempt("acme.get", "ok"), attempt("acme.post", "empty"), attempt("acme.post", "text"))
	for i, want := range []string{`{"a":"ok","b":1}`, `null`, `"plain words"`} {
		if string(got[i].Value) != want {
			t.Errorf("result %d is %s, want %s", i, got[i].Value, want)
		}
	}
	if got[0].Status != 200 || got[0].Scope == "" || got[0].Error != nil {
		t.Errorf("a result with status %d, scope %q, error %v", got[0].Status, got[0].Scope, got[0].Error)
	}
}

func exactlyOnce(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	var wg sync.WaitGroup
	var dispatched atomic.Int64
	for range 4 {
		wg.Go(func() {
			var batch []call.Attempt
			for i := range 100 {
				what := []string{"ok", "404", "500", "timeout", "text"}[i%5]
				batch = append(batch, attempt([]string{"acme.get", "acme.post"}[i%2], what), attempt("no.tool", ""))
			}
			for i, a := range execute(t, g, batch...) {
				if a.Dispatched {
					dispatched.Add(1)
				} else if batch[i].Tool != "no.tool" && a.Outcome != call.Refused {
					t.Errorf("neither dispatched nor refused: %+v", a)
				}
			}
		})
	}
	wg.Wait()
	if n := int64(len(p.Requests())); n == 0 || n != dispatched.Load() {
		t.Errorf("%d requests for %d answers of attempts that were dispatched", n, dispatched.Load())
	}
}

func streams(t *testing.T, open Open) {
	p := &Provider{Gate: make(chan struct{})}
	g := open(t, Catalogue(t), p)
	delivered, done := make(chan int, 2), make(chan error, 1)
	go func() {
		batch := []call.Attempt{attempt("acme.get", "a"), attempt("acme.get", "b")}
		done <- g.Execute(t.Context(), batch, func(i int, _ call.Answer) { delivered <- i })
	}()
	p.Gate <- struct{}{}
	<-delivered // while the other exchange is still under way
	p.Gate <- struct{}{}
	<-delivered
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func held(t *testing.T, open Open) {
	for what, code := range map[string]string{"429": "HTTP_429", "503after": "HTTP_503", "cut429": "HTTP_429"} {
		why := call.Why{Reason: call.RetryAfter, Code: code}
		g := open(t, Catalogue(t), &Provider{})
		before := time.Now()
		a := execute(t, g, attempt("full.get", what))[0]
		if a.Outcome != call.Held || !a.Dispatched || a.Scope == "" || a.Error == nil || a.Why != why {
			t.Fatalf("%s: got %+v, want held and dispatched", what, a)
		}
		if wait := a.Until.Sub(before); wait < 7*time.Second || wait > 9*time.Second {
			t.Errorf("%s: held for %v, want 7 s", what, wait)
		}
		if a.NextFree.Before(before.Add(time.Second)) {
			t.Errorf("%s: the held scope can be asked again at %v", what, a.NextFree)
		}
		next := execute(t, g, attempt("full.get", "ok"))[0] // the scope is held, not just the call
		if next.Outcome != call.Refused || next.Dispatched || next.Until.Before(a.Until.Add(-time.Millisecond)) || next.Why != why {
			t.Errorf("%s: the next call got %+v, want refused until %v for %v", what, next, a.Until, why)
		}
		if next.HoldUntil.Sub(a.Until).Abs() > time.Millisecond {
			t.Errorf("%s: the provider's hold is said to last until %v, want %v", what, next.HoldUntil, a.Until)
		}
	}
}

func bare(t *testing.T, open Open) {
	g := open(t, Catalogue(t), &Provider{})
	before := time.Now()
	a, why := execute(t, g, attempt("acme.get", "429bare"))[0], call.Why{Reason: call.Cooldown, Code: "HTTP_429"}
	if next := execute(t, g, attempt("acme.get", "ok"))[0]; a.Why != why || next.Why != why {
		t.Errorf("a bare 429 is said to hold for %v, and the next call for %v; want %v", a.Why, next.Why, why)
	}
	if wait := a.Until.Sub(before); a.Outcome != call.Held || wait < 10*time.Second || wait > 15*time.Second {
		t.Errorf("a bare 429 gave %s for %v, want held for the provider's cooldown of 10 s and jitter", a.Outcome, wait)
	}
}

func refused(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	start := time.Now()
	batch := []call.Attempt{attempt("slow.get", ""), attempt("slow.get", ""), attempt("slow.get", ""), attempt("slow.get", "")}
	batch[3].Retry = true // ahead of first attempts (Q6)
	got := execute(t, g, batch...)
	for i, want := range []call.Outcome{call.Result, call.Refused, call.Refused, call.Result} {
		if got[i].Outcome != want {
			t.Fatalf("attempt %d: got %+v, want %s", i, got[i], want)
		}
	}
	for _, a := range got[1:3] {
		if a.Dispatched || a.Scope == "" || a.Error != nil || !a.HoldUntil.IsZero() || a.Why != (call.Why{Reason: call.RateLimit}) {
			t.Errorf("a refusal that looks like a failure: %+v", a)
		}
		if wait := a.Until.Sub(start); wait < time.Hour || wait > time.Hour+time.Minute {
			t.Errorf("refused for %v, want one window of an hour", wait)
		}
		if a.NextFree.After(a.Until) || a.Until.Sub(a.NextFree) > time.Second {
			t.Errorf("next free %v, until %v", a.NextFree, a.Until)
		}
	}
	if n := len(p.Requests()); n != 2 {
		t.Errorf("%d requests, allowed are 2", n)
	}
}

func concurrency(t *testing.T, open Open) {
	p := &Provider{Gate: make(chan struct{})}
	g := open(t, Catalogue(t), p)
	answers, done := make(chan call.Answer, 3), make(chan error, 1)
	go func() {
		batch := []call.Attempt{attempt("narrow.get", ""), attempt("narrow.get", ""), attempt("narrow.get", "")}
		done <- g.Execute(t.Context(), batch, func(_ int, a call.Answer) { answers <- a })
	}()
	if a := <-answers; a.Outcome != call.Refused || a.Until.IsZero() || a.NextFree.IsZero() || a.Why.Reason != call.Concurrency {
		t.Errorf("the third of two got %+v, want refused with times", a)
	}
	close(p.Gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a := execute(t, g, attempt("narrow.get", ""))[0]; a.Outcome != call.Result {
		t.Errorf("after the slots were free: %+v", a)
	}
}

func crowded(t *testing.T, open Open) {
	p := &Provider{Gate: make(chan struct{})}
	g := open(t, Catalogue(t), p)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_ = g.Execute(t.Context(), []call.Attempt{attempt("narrow.get", "")}, func(_ int, a call.Answer) {
				if a.Outcome != call.Result {
					t.Errorf("one of two got %+v", a)
				}
			})
		})
	}
	for len(p.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	if a := execute(t, g, attempt("narrow.get", ""))[0]; a.Outcome != call.Refused || a.Until.IsZero() || a.NextFree.IsZero() {
		t.Errorf("the third of two got %+v, want refused with times", a)
	}
	close(p.Gate)
	wg.Wait()
	if a := execute(t, g, attempt("narrow.get", ""))[0]; a.Outcome != call.Result {
		t.Errorf("after the slots were free: %+v", a)
	}
}

func fence(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	fenced := attempt("acme.fenced", "timeout")
	fenced.Fence = "key-1"
	got := execute(t, g, fenced, attempt("acme.fenced", "timeout"))
	if got[0].Outcome != call.Retry || got[1].Outcome != call.Unknown {
		t.Errorf("fenced: %s, without its fence: %s; want retry and unknown", got[0].Outcome, got[1].Outcome)
	}
	keys := map[string]int{}
	for _, r := range p.Requests() {
		keys[r.Header.Get("Idempotency-Key")]++
	}
	if keys["key-1"] != 1 || keys[""] != 1 {
		t.Errorf("fences sent: %v", keys)
	}
}

func cancelledBefore(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := g.Execute(ctx, []call.Attempt{attempt("acme.get", "ok")}, func(_ int, a call.Answer) {
		if a.Dispatched {
			t.Errorf("dispatched after the cancellation: %+v", a)
		}
	})
	if err == nil || len(p.Requests()) != 0 {
		t.Errorf("error %v, %d requests; want an error and none", err, len(p.Requests()))
	}
}

func cancelledDuring(t *testing.T, open Open) {
	for tool, want := range map[string]call.Outcome{"acme.get": call.Retry, "acme.post": call.Unknown} {
		p := &Provider{Gate: make(chan struct{})}
		g := open(t, Catalogue(t), p)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan call.Answer, 1)
		go func() {
			_ = g.Execute(ctx, []call.Attempt{attempt(tool, "ok")}, func(_ int, a call.Answer) { answers <- a })
		}()
		p.Gate <- struct{}{}
		<-answers
		go func() {
			_ = g.Execute(ctx, []call.Attempt{attempt(tool, "ok")}, func(_ int, a call.Answer) { answers <- a })
		}()
		for len(p.Requests()) < 2 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if a := <-answers; a.Outcome != want || !a.Dispatched {
			t.Errorf("%s: an exchange that was cancelled gave %+v, want %s, dispatched", tool, a, want)
		}
	}
}

func secrets(t *testing.T, open Open) {
	p := &Provider{}
	g := open(t, Catalogue(t), p)
	a := execute(t, g, attempt("acme.get", "400"))[0]
	if got := p.Requests()[0].Header.Get("Authorization"); got != "Bearer "+Secret {
		t.Errorf("Authorization: %q", got)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), Secret) || strings.ContainsRune(a.Error.Message, '\x1b') {
		t.Errorf("what the provider echoed came through: %s", text)
	}
	if !strings.Contains(a.Error.Message, "such field") {
		t.Errorf("the provider's reason is missing: %s", a.Error.Message)
	}
	for _, a := range settle(t, g, attempt("acme.get", "echo"), attempt("acme.header", "echo")) {
		if value := string(a.Value); a.Outcome != call.Result || strings.Contains(value, Secret) || !strings.Contains(value, "***") {
			t.Errorf("what the provider echoed is in the result: %s, %s", a.Outcome, value)
		}
	}
}
