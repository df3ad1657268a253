package toolexec

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/edge"
	"sluice/internal/invoke"
	"sluice/internal/memory"
	"sluice/internal/provider"
)

type fixed struct{ *mapspec.Catalogue }

func (f fixed) Of(context.Context, string) (*mapspec.Catalogue, error) { return f.Catalogue, nil }

// platform is Lambda in this process: JSON in, JSON out, errors as the runtime reports them. The function goes on when
// its invoker goes away.
type platform struct {
	lambda.Handler
	t *testing.T
}

func (p platform) Invoke(ctx context.Context, payload []byte) (invoke.Result, error) {
	if len(payload) > 6<<20 {
		return invoke.Result{}, &invoke.NotStartedError{Err: errors.New("413")}
	}
	done := make(chan invoke.Result, 1)
	go func() {
		out, err := p.Handler.Invoke(p.t.Context(), payload)
		if err != nil {
			out, _ = json.Marshal(map[string]string{"errorType": edge.Name(err), "errorMessage": err.Error()})
		}
		if len(out) > 6<<20 {
			out, err = []byte(`{"errorType":"Function.ResponseSizeTooLarge"}`), errors.New("too large")
		}
		done <- invoke.Result{Payload: out, Failed: err != nil}
	}()
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return invoke.Result{}, ctx.Err()
	}
}

func over(t *testing.T, h *Handler, c *mapspec.Catalogue, batch int) *invoke.Gateway {
	return &invoke.Gateway{Invoker: platform{lambda.NewHandler(h.Handle), t}, Run: "r", Catalogue: c, Blobs: h.Blobs, Batch: batch}
}

func handler(c *mapspec.Catalogue, s gateway.Sender) *Handler {
	return &Handler{Catalogues: fixed{c}, Pacer: pacer.New(memory.New(), "toolexec"), Sender: s, Secrets: gatewaytest.Secrets{},
		Blobs: memory.NewBlobs(), Log: slog.New(slog.DiscardHandler)}
}

// The gateway of the cloud keeps the contract that the laptop's keeps.
func TestGatewayOverInvocationsKeepsTheContract(t *testing.T) {
	gatewaytest.RunBatched(t, func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway {
		return over(t, handler(c, s), c, 0)
	})
}

func TestGatewayOverInvocationsOverSockets(t *testing.T) {
	client := provider.New(provider.Options{DialTimeout: gatewaytest.SocketDialTimeout})
	t.Cleanup(client.CloseIdleConnections)
	gatewaytest.RunSockets(t, func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway {
		return over(t, handler(c, s), c, 0)
	}, client)
}

// M8: what reading bodies took of the function's memory is known to who invoked it.
func TestM8BodyUseIsAnswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `"four"`) }))
	t.Cleanup(server.Close)
	c, err := mapspec.ParseTools("t.yaml", []byte(`{version: 1, providers: {a: {url: "`+server.URL+`", allowPrivate: true, limits: [{rate: 1000, per: 1s}]}},
tools: {a.get: {path: /x}, a.small: {path: /x, maxBody: 2B}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := handler(c, provider.New(provider.Options{}))
	h.Bodies = gateway.NewBodies(0)
	g := over(t, h, c, 0)
	for range 2 {
		if err := g.Execute(t.Context(), append(attempts(1, "a.get"), attempts(1, "a.small")...), func(int, call.Answer) {}); err != nil {
			t.Fatal(err)
		}
	}
	use := g.BodyUse()
	if use.Peak < 6 {
		t.Errorf("peak %d", use.Peak)
	}
	use.Peak = 0
	if want := (call.BodyUse{Turns: 2, Bytes: 12, Refusals: 2}); use != want {
		t.Errorf("%+v, want %+v", use, want)
	}
}

func attempts(n int, tool string) []call.Attempt {
	batch := make([]call.Attempt, n)
	for i := range batch {
		batch[i] = call.Attempt{Tool: tool, Input: json.RawMessage(`{"what":"ok"}`), RequestID: "r"}
	}
	return batch
}

// Answers larger than a response may be come all the same, and leave nothing behind.
func TestAnswersTooLargeForAPayloadAreNotLost(t *testing.T) {
	c := gatewaytest.Catalogue(t)
	h := handler(c, &gatewaytest.Provider{})
	h.MaxPayload = 200
	var mu sync.Mutex
	got := 0
	err := over(t, h, c, 0).Execute(t.Context(), attempts(20, "acme.get"), func(_ int, a call.Answer) {
		mu.Lock()
		defer mu.Unlock()
		if string(a.Value) == `{"a":"ok","b":1}` {
			got++
		}
	})
	if err != nil || got != 20 {
		t.Errorf("%d answers, %v", got, err)
	}
	res, err := h.Handle(t.Context(), []byte(`{"run":"r","attempts":[{"tool":"acme.get","input":{"what":"ok"},"requestId":"a","number":0}]}`))
	if err != nil || res.Object != "" || len(res.Answers) != 1 {
		t.Errorf("a small answer: %+v, %v", res, err)
	}
}

// stuck is a table that gives no answer to the pacer.
type stuck struct{ *memory.Table }

func (stuck) Get(context.Context, table.Key) (table.Item, error) {
	return table.Item{}, errors.New("no answer")
}

// What was provably not dispatched is refused, and costs no attempt.
func TestT4WithoutThePacersStoreNothingIsDispatched(t *testing.T) {
	c, p := gatewaytest.Catalogue(t), &gatewaytest.Provider{}
	h := handler(c, p)
	h.Pacer = pacer.New(stuck{memory.New()}, "toolexec")
	n := 0
	err := over(t, h, c, 0).Execute(t.Context(), attempts(1, "acme.post"), func(_ int, a call.Answer) {
		n++
		if a.Outcome != call.Refused || a.Dispatched || a.Until.Before(time.Now()) {
			t.Errorf("%+v", a)
		}
	})
	if err != nil || n != 1 || len(p.Requests()) != 0 {
		t.Errorf("%d answers, %d requests, %v", n, len(p.Requests()), err)
	}
}

// An exchange that would outlast the invocation is cut off in time to say so.
func TestT2TheInvocationsEndIsAnAnswer(t *testing.T) {
	c := gatewaytest.Catalogue(t)
	h := handler(c, &gatewaytest.Provider{Gate: make(chan struct{})})
	ctx, cancel := context.WithTimeout(t.Context(), edge.AnswerMargin+50*time.Millisecond)
	defer cancel()
	raw, err := json.Marshal(invoke.Request{Run: "r", Attempts: append(attempts(1, "acme.get"), attempts(1, "acme.post")...)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Handle(ctx, raw)
	if err != nil || res.Answers[0].Outcome != call.Retry || res.Answers[1].Outcome != call.Unknown {
		t.Errorf("%+v, %v", res, err)
	}
	if ctx.Err() != nil {
		t.Error("the answer came after the end")
	}
}

func TestHandlerRefusesWhatItDoesNotKnow(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	h := handler(nil, &gatewaytest.Provider{})
	h.Catalogues = &Stored{Store: st}
	for raw, want := range map[string]string{
		`{"run":"r","attempts":[]}`:                         "BadRequest",
		`{"run":"r","attempts":[{"tool":"a"}],"secret":1}`:  "BadRequest",
		`{"run":"r","permits":2,"attempts":[{"tool":"a"}]}`: "BadRequest",
		`{"run":"nobody","attempts":[{"tool":"a"}]}`:        "RunNotFound",
	} {
		if _, err := h.Handle(t.Context(), []byte(raw)); err == nil || edge.Name(err) != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}

// Catalogues are read once, and runs with the same one share it.
func TestCataloguesAreKept(t *testing.T) {
	counted := &counting{Table: memory.New()}
	s := &Stored{Store: &store.Store{Table: counted}}
	tools := []byte("version: 1\nproviders: {a: {url: \"https://a.example\"}}\ntools: {a.get: {path: /x}}\n")
	for _, id := range []string{"one", "two", "bare"} {
		docs := sheet.Documents{MapFile: "m", Map: []byte("x"), ToolsFile: "t.yaml", Tools: tools}
		if id == "bare" {
			docs.Tools = nil
		}
		rec := &sheet.Run{ID: id, Status: sheet.Completed}
		if err := rec.SaveDocuments(t.Context(), s.Store, docs); err != nil {
			t.Fatal(err)
		}
		if err := sheet.Create(t.Context(), s.Store, rec); err != nil {
			t.Fatal(err)
		}
	}
	one, err := s.Of(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Of(t.Context(), "two")
	if err != nil || one != two {
		t.Errorf("not shared: %v", err)
	}
	reads := counted.reads
	if again, _ := s.Of(t.Context(), "one"); again != one || counted.reads != reads {
		t.Errorf("read again: %d", counted.reads-reads)
	}
	if _, err := s.Of(t.Context(), "bare"); err == nil || edge.Name(edge.Named("bare", err)) != "RunFailed" {
		t.Errorf("no tools: %v", err)
	}
}

type counting struct {
	*memory.Table
	reads int
}

func (c *counting) Get(ctx context.Context, k table.Key) (table.Item, error) {
	c.reads++
	return c.Table.Get(ctx, k)
}

// The messages of events/ are what the two functions exchange.
func TestMessages(t *testing.T) {
	raw, err := os.ReadFile("../../../events/toolexec-request.json")
	if err != nil {
		t.Fatal(err)
	}
	h := handler(gatewaytest.Catalogue(t), &gatewaytest.Provider{})
	lambdacontext.MemoryLimitInMB = 512
	t.Cleanup(func() { lambdacontext.MemoryLimitInMB = 0 })
	res, err := h.Handle(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Answers {
		res.Answers[i].NextFree = time.Time{}
	}
	if res.Billed.Millis < 1 {
		t.Errorf("billed %+v", res.Billed)
	}
	res.Billed.Millis = 84 // as there
	raw, err = os.ReadFile("../../../events/toolexec-response.json")
	if err != nil {
		t.Fatal(err)
	}
	var want invoke.Response
	if err := edge.Decode(raw, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&want, res); d != "" {
		t.Error(d)
	}
}

// No secret is in a log line, and no row.
func TestT6LogsCarryNoPayload(t *testing.T) {
	var b strings.Builder
	h := handler(gatewaytest.Catalogue(t), echo{})
	h.Log = slog.New(slog.NewJSONHandler(&b, nil))
	raw, _ := json.Marshal(invoke.Request{Run: "r", Attempts: []call.Attempt{{Tool: "acme.get", Input: json.RawMessage(`{"what":"jane@example.org"}`)}}})
	res, err := h.Handle(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if answer := string(res.Answers[0].Value); answer != `"Bearer ***"` {
		t.Errorf("answered %s", answer)
	}
	if !strings.Contains(b.String(), `"result":1`) || strings.Contains(b.String(), "jane") || strings.Contains(b.String(), gatewaytest.Secret) {
		t.Errorf("%s", b.String())
	}
}

// R14: a retry leaves a line with its phases, and without ids of request, receipt or customer.
func TestR14RetriesLeaveALine(t *testing.T) {
	var b strings.Builder
	h := handler(gatewaytest.Catalogue(t), echo{})
	h.Log = slog.New(slog.NewJSONHandler(&b, nil))
	raw, _ := json.Marshal(invoke.Request{Run: "r", Attempts: []call.Attempt{
		{Tool: "acme.get", Input: json.RawMessage(`{"what":"jane"}`), RequestID: "req-1", Fence: "fence-1", Number: 1, Retry: true},
		{Tool: "acme.get", Input: json.RawMessage(`{"what":"john"}`), RequestID: "req-2"},
	}})
	if _, err := h.Handle(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(b.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["msg"] != "retry" {
			continue
		}
		lines++
		for _, key := range []string{"granted", "slept", "checked", "dispatched", "answered", "voidPermits"} {
			if n, ok := got[key].(float64); !ok || n < 0 {
				t.Errorf("%s is %v", key, got[key])
			}
		}
		if got["tool"] != "acme.get" || got["outcome"] != "result" || got["status"] != 200.0 {
			t.Errorf("%s", line)
		}
		for _, id := range []string{"jane", "req-1", "fence-1", "acme-"} {
			if strings.Contains(line, id) {
				t.Errorf("%q is in %s", id, line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d lines for one retry:\n%s", lines, b.String())
	}
}

type echo struct{}

func (echo) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	return &gateway.Response{Status: 200, Header: h, Body: []byte(`"` + r.Header.Get("Authorization") + `"`)}, nil
}
