package toolexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/intake"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/invoke"
	"sluice/internal/memory"
)

// The contract with providers, as one table: for every way in which a request can fail, how often the provider is asked in
// all, how the call ends, and what is paid. The values are those of docs/guarantees.md and docs/errors.md, written down by
// hand. They hold for a row's call, for two rows' calls in one request, and for a call at the end of the run; in the
// process, and over the function that makes the calls in the cloud.

// end is how it ends: requests that may have reached the provider, the error's code (empty: a result), and requests that
// were paid for.
type end struct {
	requests int
	code     string
	paid     int
}

const unknown = call.OutcomeUnknown

type failure struct {
	name    string
	fails   func() (*gateway.Response, error) // the exchange
	once    bool                              // the provider is well afterwards; otherwise it never is
	says    string                            // what a message has, where the call fails
	id      end                               // an idempotent tool
	fenced  end
	neither end
	batch   *[3]end // the same, where calls that share a request end otherwise
}

func sends(code, message string, sent bool) func() (*gateway.Response, error) {
	return func() (*gateway.Response, error) {
		return nil, &gateway.SendError{Code: code, Message: message, Sent: sent}
	}
}

func answers(status int, body string, header ...string) func() (*gateway.Response, error) {
	return func() (*gateway.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &gateway.Response{Status: status, Header: h, Body: []byte(body)}, nil
	}
}

var failures = []failure{
	// Nothing was sent: repeated whatever the tool is, and no attempt is charged; for a minute.
	{"refused connection, once", sends("NOT_SENT", "connection refused", false), true, "",
		end{1, "", 1}, end{1, "", 1}, end{1, "", 1}, nil},
	{"refused connection", sends("NOT_SENT", "connection refused", false), false, "connection refused",
		end{0, "NOT_SENT", 0}, end{0, "NOT_SENT", 0}, end{0, "NOT_SENT", 0}, nil},
	{"reset before a byte left, once", sends("NOT_SENT", "reset", false), true, "",
		end{1, "", 1}, end{1, "", 1}, end{1, "", 1}, nil},
	{"forbidden address", sends("EGRESS_DENIED", "a private address", false), false, "a private address",
		end{0, "EGRESS_DENIED", 0}, end{0, "EGRESS_DENIED", 0}, end{0, "EGRESS_DENIED", 0}, nil},

	// The request may have arrived: repeated where that does no harm, up to 4 attempts.
	{"reset after it had left, once", sends("CONNECTION_LOST", "reset", true), true, "may have been executed",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},
	{"reset after it had left", sends("CONNECTION_LOST", "reset", true), false, "reset",
		end{4, "CONNECTION_LOST", 0}, end{4, "CONNECTION_LOST", 0}, end{1, unknown, 0},
		&[3]end{{4, "CONNECTION_LOST", 0}, {4, unknown, 0}, {1, unknown, 0}}},
	{"timeout, once", sends("TIMEOUT", "no answer within 30s", true), true, "no answer within 30s",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},
	{"timeout", sends("TIMEOUT", "no answer within 30s", true), false, "no answer within 30s",
		end{4, "TIMEOUT", 0}, end{4, "TIMEOUT", 0}, end{1, unknown, 0},
		&[3]end{{4, "TIMEOUT", 0}, {4, unknown, 0}, {1, unknown, 0}}},
	{"cut answer, once", sends("BODY_CUT", "cut", true), true, "cut",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},
	{"500, once", answers(500, "oops"), true, "answered 500",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},
	{"500", answers(500, "oops"), false, "oops",
		end{4, "HTTP_500", 0}, end{4, "HTTP_500", 0}, end{1, unknown, 0},
		&[3]end{{4, "HTTP_500", 0}, {4, unknown, 0}, {1, unknown, 0}}},
	{"503 without a time, once", answers(503, ""), true, "answered 503",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},
	{"408, once", answers(408, ""), true, "answered 408",
		end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}, nil},

	// Answered with success, and not readable: paid for, every time.
	{"garbage as a 200, once", answers(200, "<html>"), true, "not the JSON",
		end{2, "", 2}, end{2, "", 2}, end{1, unknown, 1}, nil},
	{"garbage as a 200", answers(200, "<html>"), false, "not the JSON",
		end{4, "BROKEN_ANSWER", 4}, end{4, "BROKEN_ANSWER", 4}, end{1, unknown, 1},
		&[3]end{{4, "BROKEN_ANSWER", 4}, {4, unknown, 4}, {1, unknown, 1}}},
	{"a 200 that does not fit the tool", answers(200, `{"y": 1}`), false, "no such key",
		end{1, "BAD_RESULT", 1}, end{1, "BAD_RESULT", 1}, end{1, "BAD_RESULT", 1}, nil},

	// Refused for now: nothing was executed, and it is made again whatever the tool is.
	{"429 with a time, once", answers(429, "", "Retry-After", "2"), true, "",
		end{2, "", 1}, end{2, "", 1}, end{2, "", 1}, nil},
	{"429 without a time, once", answers(429, ""), true, "",
		end{2, "", 1}, end{2, "", 1}, end{2, "", 1}, nil},
	{"503 with a time, once", answers(503, "", "Retry-After", "600"), true, "",
		end{2, "", 1}, end{2, "", 1}, end{2, "", 1}, nil},
	{"429 beyond the provider's noProgress", answers(429, "", "Retry-After", "7200"), false, "completed is saved",
		end{1, "PROVIDER_EXHAUSTED", 0}, end{1, "PROVIDER_EXHAUSTED", 0}, end{1, "PROVIDER_EXHAUSTED", 0}, nil},
	{"425, once", answers(425, ""), true, "",
		end{2, "", 1}, end{2, "", 1}, end{2, "", 1}, nil},

	// Refused for good.
	{"400", answers(400, "no such field"), false, "no such field",
		end{1, "HTTP_400", 0}, end{1, "HTTP_400", 0}, end{1, "HTTP_400", 0}, nil},
	{"422", answers(422, ""), false, "answered 422",
		end{1, "HTTP_422", 0}, end{1, "HTTP_422", 0}, end{1, "HTTP_422", 0}, nil},
	{"401", answers(401, ""), false, "check the provider's credential",
		end{1, "HTTP_401", 0}, end{1, "HTTP_401", 0}, end{1, "HTTP_401", 0}, nil},
	{"403", answers(403, ""), false, "allowed to do",
		end{1, "HTTP_403", 0}, end{1, "HTTP_403", 0}, end{1, "HTTP_403", 0}, nil},
	{"501", answers(501, ""), false, "answered 501",
		end{1, "HTTP_501", 0}, end{1, "HTTP_501", 0}, end{1, "HTTP_501", 0}, nil},
	{"redirect", func() (*gateway.Response, error) {
		return nil, &gateway.SendError{Code: "REDIRECT", Message: "to https://b.example", Sent: true, Response: &gateway.Response{Status: 302, Header: http.Header{}}}
	}, false, "https://b.example",
		end{1, "REDIRECT", 0}, end{1, "REDIRECT", 0}, end{1, "REDIRECT", 0}, nil},

	// Too large. A batch is made in halves where nothing was executed, or where that does no harm.
	{"413, once", answers(413, ""), true, "answered 413",
		end{1, "HTTP_413", 0}, end{1, "HTTP_413", 0}, end{1, "HTTP_413", 0},
		&[3]end{{3, "", 2}, {3, "", 2}, {3, "", 2}}},
	{"413", answers(413, ""), false, "answered 413",
		end{1, "HTTP_413", 0}, end{1, "HTTP_413", 0}, end{1, "HTTP_413", 0},
		&[3]end{{3, "HTTP_413", 0}, {3, "HTTP_413", 0}, {3, "HTTP_413", 0}}},
	{"an answer that is too large, once", sends("BODY_TOO_LARGE", "longer than 5MB", true), true, "longer than 5MB",
		end{1, "BODY_TOO_LARGE", 0}, end{1, "BODY_TOO_LARGE", 0}, end{1, "BODY_TOO_LARGE", 0},
		&[3]end{{3, "", 2}, {1, "BODY_TOO_LARGE", 0}, {1, "BODY_TOO_LARGE", 0}}},
}

const matrixTools = `
version: 1
providers: {a: {url: "https://a.example", auth: {header: X-Key, secret: "env:KEY"}, limits: [{rate: 1000, per: 1s}]}}
tools:
  a.id: {method: POST, idempotent: true, cost: 1, body: "${input.x}", result: "${body.x}"}
  a.fenced: {method: POST, fence: Idempotency-Key, cost: 1, body: "${input.x}", result: "${body.x}"}
  a.neither: {method: POST, cost: 1, body: "${input.x}", result: "${body.x}"}
  a.idMany: {method: POST, idempotent: true, cost: 1, BATCH}
  a.fencedMany: {method: POST, fence: Idempotency-Key, cost: 1, BATCH}
  a.neitherMany: {method: POST, cost: 1, BATCH}
`

// patient is a provider that fails as it is told. It notes what may have reached it.
type patient struct {
	failure
	mu     sync.Mutex
	asked  int
	sent   int
	fences map[string]bool
}

func (p *patient) Send(_ context.Context, req *gateway.Request) (*gateway.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if !p.once || p.asked == 1 {
		res, err := p.fails()
		var broken *gateway.SendError
		if !errors.As(err, &broken) || broken.Sent {
			p.reached(req)
		}
		return res, err
	}
	p.reached(req)
	var xs []string
	body := `{"x": "fine"}`
	if json.Unmarshal(req.Body, &xs) == nil {
		body = `{"x": "fine", "items": [` + strings.TrimSuffix(strings.Repeat(`{"x": "fine"},`, len(xs)), ",") + `]}`
	}
	return answers(200, body)()
}

func (p *patient) reached(req *gateway.Request) {
	p.sent++
	p.fences[req.Header.Get("Idempotency-Key")] = true
}

// way is how the calls are made: on a row each, in one request, or at the end of the run.
type way struct {
	name, text string
	tool       string // after the kind of tool
	lines      string
}

var ways = []way{
	{"row", "version: 1\ncolumns: [{name: one, call: a.TOOL, with: {x: '${row.x}'}}]\n", "", "x\n1"},
	{"batch", "version: 1\ncolumns: [{name: one, call: a.TOOL, with: {x: '${row.x}'}}]\n", "Many", "x\n1\n2"},
	{"end of the run", "version: 1\ncolumns: [{name: one, value: '1'}]\nfinish: [{call: a.TOOL, with: {x: end}}]\n", "", "x\n1"},
}

func TestTheContractWithProviders(t *testing.T) {
	for _, f := range failures {
		for i, kind := range []string{"id", "fenced", "neither"} {
			for _, w := range ways {
				want := [3]end{f.id, f.fenced, f.neither}[i]
				if w.tool != "" && f.batch != nil {
					want = f.batch[i]
				}
				for _, wire := range []bool{false, true} {
					name := fmt.Sprintf("%s/%s/%s/wire=%v", f.name, kind, w.name, wire)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							keepsTheContract(t, f, want, kind+w.tool, w, func(h *Handler, st *store.Store, job *run.Job) call.Gateway {
								if wire {
									return over(t, h, job.Tools, 0)
								}
								return gateway.New(gateway.Config{Catalogue: job.Tools, Pacer: pacer.New(st.Table, "here"), Sender: h.Sender, Secrets: h.Secrets})
							})
						})
					})
				}
			}
		}
	}
}

func keepsTheContract(t *testing.T, f failure, want end, tool string, w way, open func(*Handler, *store.Store, *run.Job) call.Gateway) {
	p := &patient{failure: f, fences: map[string]bool{}}
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	tools := strings.ReplaceAll(matrixTools, "BATCH", `result: "${body.x}", batch: {size: 10, body: "${inputs.map(i, i.x)}", each: "${body.items}"}`)
	if f.name == "a 200 that does not fit the tool" {
		tools = strings.ReplaceAll(tools, "${body.items}", "${inputs.map(i, body)}")
	}
	job, err := run.Start(t.Context(), st, run.Request{
		ID: "r", InputName: "in.csv", Format: intake.Options{Format: "csv"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte(strings.ReplaceAll(w.text, "TOOL", tool)), ToolsFile: "t.yaml", Tools: []byte(tools)},
		Input:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(w.lines)), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	stats, faults := toTheEnd(t, st, job, open(handler(job.Tools, p), st, job))
	if calls := strings.Count(w.lines, "\n"); len(faults) != calls {
		t.Errorf("%d calls have ended, want %d", len(faults), calls)
	}
	for _, fault := range faults {
		switch {
		case fault == nil:
			if want.code != "" {
				t.Errorf("a result, want %s", want.code)
			}
		case fault.Code != want.code:
			t.Errorf("ended with %v, want %q", fault, want.code)
		case !strings.Contains(fault.Message, f.says):
			t.Errorf("the message is %q, want %q in it", fault.Message, f.says)
		case fault.Code == unknown && (fault.Dispatch == nil || fault.Dispatch.Request == "" || fault.Dispatch.At.IsZero() || !strings.Contains(fault.Message, "may have been executed")):
			t.Errorf("nobody can find out about %+v, %+v", fault, fault.Dispatch)
		}
	}
	if p.sent != want.requests || stats.Dispatched != int64(want.requests) || stats.CostMicros != int64(want.paid)*1e6 {
		t.Errorf("%d requests reached the provider, %d are counted, and %s is paid; want %d and %d",
			p.sent, stats.Dispatched, sheet.Money(stats.CostMicros), want.requests, want.paid)
	}
	if fenced := strings.HasPrefix(tool, "fenced"); fenced != !p.fences[""] && p.sent > 0 || fenced && len(p.fences) > max(1, 3*(len(faults)-1)) {
		t.Errorf("fences %v", p.fences)
	}
}

// toTheEnd works the run to its end, over its waits, and returns what it came to, and how the calls ended.
func toTheEnd(t *testing.T, st *store.Store, job *run.Job, g call.Gateway) (sheet.Stats, []*sheet.Fault) {
	ports := run.Ports{Store: st, Gateway: g, Owner: "here"}
	for ended := false; !ended; {
		res, err := job.Slice(t.Context(), ports, 0, run.Settings{})
		if err == nil && res.Outcome == run.Done {
			res, err = job.Finish(t.Context(), ports, run.Settings{}, func(context.Context) error { return nil })
			ended = res.Outcome == run.Done
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(res.WakeAt))
	}
	rec, err := sheet.Load(t.Context(), st, "r")
	if err != nil {
		t.Fatal(err)
	}
	var faults []*sheet.Fault
	for _, s := range rec.Finish {
		faults = append(faults, s.Error)
	}
	for v, err := range job.Rows(t.Context(), ports) {
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Finish) == 0 {
			faults = append(faults, v.Error)
		}
	}
	return rec.Stats, faults
}

// crashing is a platform whose first invocation goes wrong: before the function was started, or after it had done all.
type crashing struct {
	platform
	first func(done invoke.Result) (invoke.Result, error)
	after bool
	calls int
}

func (c *crashing) Invoke(ctx context.Context, payload []byte) (invoke.Result, error) {
	if c.calls++; c.calls > 1 {
		return c.platform.Invoke(ctx, payload)
	}
	var done invoke.Result
	if c.after {
		var err error
		if done, err = c.platform.Invoke(ctx, payload); err != nil {
			return done, err
		}
	}
	return c.first(done)
}

func reports(kind string) func(invoke.Result) (invoke.Result, error) {
	return func(invoke.Result) (invoke.Result, error) {
		return invoke.Result{Payload: []byte(`{"errorType":"` + kind + `","errorMessage":"x"}`), Failed: true}, nil
	}
}

// The platform between the engine and the provider fails once. What was certainly not sent is sent, and no attempt is
// charged; what may have been sent is a failure after which the request may have arrived. What the provider was paid in an
// exchange that nobody has heard of is not known.
func TestTheContractOverAPlatformThatFails(t *testing.T) {
	well := failure{name: "none", fails: answers(200, `{"x": "fine"}`), once: true, says: "may have been executed"}
	for _, tt := range []struct {
		name                string
		after               bool
		first               func(invoke.Result) (invoke.Result, error)
		id, fenced, neither end
	}{
		{"throttled", false, func(invoke.Result) (invoke.Result, error) {
			return invoke.Result{}, &invoke.NotStartedError{Throttled: true, Err: errors.New("429")}
		}, end{1, "", 1}, end{1, "", 1}, end{1, "", 1}},
		{"failed before it began", false, reports("Transient"), end{1, "", 1}, end{1, "", 1}, end{1, "", 1}},
		{"ran out of time", true, reports("Sandbox.Timedout"), end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}},
		{"ran out of memory", true, reports("Runtime.OutOfMemory"), end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}},
		{"was cut off", true, func(invoke.Result) (invoke.Result, error) { return invoke.Result{}, errors.New("connection reset") },
			end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}},
		{"answered garbage", true, func(invoke.Result) (invoke.Result, error) { return invoke.Result{Payload: []byte("{")}, nil },
			end{2, "", 1}, end{2, "", 1}, end{1, unknown, 0}},
	} {
		for i, kind := range []string{"id", "fenced", "neither"} {
			for _, w := range ways {
				t.Run(tt.name+"/"+kind+"/"+w.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := well
						if w.tool != "" {
							f.fails, f.once = answers(200, `{"items": [{"x": "fine"}, {"x": "fine"}]}`), true
						}
						keepsTheContract(t, f, [3]end{tt.id, tt.fenced, tt.neither}[i], kind+w.tool, w, func(h *Handler, _ *store.Store, job *run.Job) call.Gateway {
							g := over(t, h, job.Tools, 0)
							g.Invoker = &crashing{platform: g.Invoker.(platform), first: tt.first, after: tt.after}
							return g
						})
					})
				})
			}
		}
	}
}
