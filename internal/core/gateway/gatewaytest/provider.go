// Package gatewaytest is the contract of call.Gateway: whoever carries attempts to the executor, in this process or
// over a network, passes Run. It owns a provider without a network for such tests.
package gatewaytest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
)

// Secret is the credential of the provider under test. It must never come back in an answer.
const Secret = "s3cret-of-the-contract"

// tools has a tool per kind of answer. The provider echoes its credential where it can do harm.
const tools = `
version: 1
providers:
  acme:
    url: https://acme.example
    auth: {header: Authorization, value: "Bearer ${secret}", secret: "env:ACME"}
    limits: [{rate: 100000, per: 1s}]
    cooldown: 10s
  slow:
    url: https://slow.example
    limits: [{rate: 2, per: 1h}]
  narrow:
    url: https://narrow.example
    limits: [{rate: 100000, per: 1s}]
    concurrency: 2
  full:
    url: https://full.example
    limits: [{rate: 100000, per: 1s}]
tools:
  acme.get: {path: "/get/{what}", input: {what: string}, missing: "${status == 404}", fail: "${has(body.error)}", cost: 0.01}
  acme.header: {path: "/get/{what}", input: {what: string}, result: "${headers}"}
  acme.post: {method: POST, path: "/post/{what}", input: {what: string}}
  acme.fenced: {method: POST, path: "/post/{what}", input: {what: string}, fence: Idempotency-Key}
  acme.many: {method: POST, idempotent: true, path: /many, MANY}
  acme.manyposts: {method: POST, path: /many, MANY}
  acme.manyfenced: {method: POST, path: /many, fence: Idempotency-Key, MANY}
  slow.many: {method: POST, idempotent: true, path: /many, MANY}
  slow.get: {path: /get/ok}
  narrow.get: {path: /get/ok}
  full.get: {path: "/get/{what}", input: {what: string}}
`

// Catalogue is the tool catalogue of the contract.
func Catalogue(t testing.TB) *mapspec.Catalogue {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte(strings.ReplaceAll(tools, "MANY", many)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Secrets resolves every reference to Secret.
type Secrets struct{}

// Resolve implements gateway.Secrets.
func (Secrets) Resolve(context.Context, string) (string, error) { return Secret, nil }

// Provider is a gateway.Sender that answers by the last element of the path. It is safe for concurrent use.
type Provider struct {
	Gate chan struct{} // if set, each exchange waits until it can receive

	mu   sync.Mutex
	seen []*gateway.Request
}

// Requests returns what was sent.
func (p *Provider) Requests() []*gateway.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// Send implements gateway.Sender.
func (p *Provider) Send(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	p.mu.Lock()
	p.seen = append(p.seen, req)
	p.mu.Unlock()
	if p.Gate != nil {
		select {
		case <-p.Gate:
		case <-ctx.Done():
			return nil, &gateway.SendError{Code: "CANCELLED", Message: "cancelled", Sent: true}
		}
	}
	what := req.URL[strings.LastIndexByte(req.URL, '/')+1:]
	if what == "many" {
		what = whole(req)
	}
	if items, ok := strings.CutPrefix(what, "items"); ok {
		return response(200, items, "Content-Type", "application/json"), nil
	}
	if e, ok := sendErrors[what]; ok {
		return nil, &e
	}
	if r, ok := responses[what]; ok {
		return &r, nil
	}
	return response(200, `{"b": 1, "a": "`+what+`"}`, "Content-Type", "application/json"), nil
}

func response(status int, body string, header ...string) *gateway.Response {
	h := make(http.Header)
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &gateway.Response{Status: status, Header: h, Body: []byte(body)}
}

var responses = map[string]gateway.Response{
	"empty":    *response(204, ""),
	"text":     *response(200, "plain words", "Content-Type", "text/plain"),
	"broken":   *response(200, `{"a": `, "Content-Type", "application/json"),
	"huge":     *response(200, `{"a": 123456789012345678901234567890}`, "Content-Type", "application/json"),
	"echo":     *response(200, `{"key": "`+Secret+`", "header": "Bearer `+Secret+`"}`, "Content-Type", "application/json", "X-Key", Secret),
	"failure":  *response(200, `{"error": "out of credit"}`, "Content-Type", "application/json"),
	"301":      *response(301, ""),
	"400":      *response(400, "no \x1b[31m"+Secret+"\n such field"),
	"401":      *response(401, ""),
	"403":      *response(403, ""),
	"404":      *response(404, ""),
	"408":      *response(408, ""),
	"413":      *response(413, "too large"),
	"toomany":  *response(400, `{"code": "too many"}`, "Content-Type", "application/json"),
	"422":      *response(422, `{"error": "bad"}`, "Content-Type", "application/json"),
	"425":      *response(425, ""),
	"429":      *response(429, "", "Retry-After", "7"),
	"429bare":  *response(429, ""),
	"500":      *response(500, "oops"),
	"501":      *response(501, ""),
	"503":      *response(503, ""),
	"503after": *response(503, "", "Retry-After", "7"),
}

var sendErrors = map[string]gateway.SendError{
	"notsent":   {Code: "NOT_SENT", Message: "nothing was sent"},
	"malformed": {Code: "BAD_REQUEST", Message: "cannot be sent"},
	"timeout":   {Code: "TIMEOUT", Message: "no answer", Sent: true},
	"lost":      {Code: "CONNECTION_LOST", Message: "reset", Sent: true},
	"cut":       {Code: "BODY_CUT", Message: "cut", Sent: true, Response: response(200, "")},
	"cut429": {Code: "BODY_CUT", Message: "cut", Sent: true,
		Response: response(429, "", "Retry-After", "7")},
	"large":    {Code: "BODY_TOO_LARGE", Message: "too large", Sent: true, Response: response(200, "")},
	"redirect": {Code: "REDIRECT", Message: "redirects", Sent: true, Response: response(302, "")},
	"egress":   {Code: "EGRESS_DENIED", Message: "denied"},
}
