// Package gateway executes one attempt of a call: permit, check, dispatch, classify, report. It is the same code in
// the toolexec function and on a laptop.
package gateway

import (
	"context"
	"net/http"
	"time"
)

// Request is one HTTP request, complete but for its credential.
type Request struct {
	Method  string
	URL     string
	Header  http.Header
	Body    []byte
	Timeout time.Duration // of the exchange alone: first byte sent to last byte read
	MaxBody int64         // bytes of response body that are accepted
	Egress  Egress
	Turn    *Turn  // of the answer's body; nil: without a limit
	Leaves  func() // told once, when the request is about to be written; nil: nobody wants to know
}

// Egress is what the request may reach: this host (with port), and private addresses only if allowed.
type Egress struct {
	Host         string
	AllowPrivate bool
}

// Response is a complete answer.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// SendError is a failed exchange.
type SendError struct {
	// NOT_SENT, BAD_REQUEST (can never be sent), EGRESS_DENIED, CANCELLED, TIMEOUT, CONNECTION_LOST, BODY_CUT,
	// BODY_TOO_LARGE, REDIRECT. What each means is said by verdicts.
	Code     string
	Message  string // for users; names the target's origin, never the credential or the query
	Sent     bool   // a byte of the request may have left
	Response *Response
}

func (e *SendError) Error() string { return e.Code + ": " + e.Message }

// Sender performs exchanges; internal/provider is the one over net/http. An error is always a *SendError.
type Sender interface {
	Send(ctx context.Context, req *Request) (*Response, error)
}

// Secrets resolves a reference such as env:ACME_KEY. The value is never logged, stored or returned to callers of
// the gateway.
type Secrets interface {
	Resolve(ctx context.Context, ref string) (string, error)
}
