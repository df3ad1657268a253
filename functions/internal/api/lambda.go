// Package api puts the HTTP API (internal/api) behind API Gateway, in a Lambda function. It owns the translation of events
// and the adapters to what is around the function; routes, bodies and statuses are the API's.
package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Function is the Lambda function in front of a handler. It is written here because the library that many use for this
// (aws-lambda-go-api-proxy) has not been kept up since 2024.
type Function struct{ HTTP http.Handler }

// Handle answers one event. It returns no error: every failure is an answer.
func (f Function) Handle(ctx context.Context, in events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	if to := slashless(in); to != "" {
		return events.APIGatewayProxyResponse{StatusCode: http.StatusFound, Headers: map[string]string{"Location": to, "Cache-Control": "no-store"}}, nil
	}
	w := &response{header: http.Header{}}
	f.HTTP.ServeHTTP(w, request(ctx, in))
	return w.event(), nil
}

// ledOn marks an address that was led to.
const ledOn = "slash"

// slashless is where the document is if it was asked for at the stage's address without the slash at its end: the addresses in it
// are relative to it, and would lead out of the stage. Empty: at any other address. It is relative, so that it cannot lead to
// another host, and has a mark, so that it leads on only once, whatever stands between.
func slashless(in events.APIGatewayProxyRequest) string {
	at := in.RequestContext.Path // as the client said it, with the stage
	if in.Path != "/" || in.HTTPMethod != http.MethodGet && in.HTTPMethod != http.MethodHead || at == "" || strings.HasSuffix(at, "/") {
		return ""
	}
	if _, marked := in.QueryStringParameters[ledOn]; marked {
		return ""
	}
	return (&url.URL{Path: "./" + path.Base(at) + "/"}).EscapedPath() + "?" + ledOn
}

// request is the event as net/http would have read it.
func request(ctx context.Context, in events.APIGatewayProxyRequest) *http.Request {
	var body io.Reader = strings.NewReader(in.Body)
	if in.IsBase64Encoded {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	header := http.Header{}
	for name, value := range in.Headers {
		header.Set(name, value)
	}
	for name, values := range in.MultiValueHeaders { // the same ones, and all of them
		header[http.CanonicalHeaderKey(name)] = values
	}
	query := url.Values(in.MultiValueQueryStringParameters)
	if len(query) == 0 {
		query = url.Values{}
		for name, value := range in.QueryStringParameters {
			query.Set(name, value)
		}
	}
	u := &url.URL{Path: in.Path, RawQuery: query.Encode()}
	r := &http.Request{
		Method: in.HTTPMethod, URL: u, RequestURI: u.RequestURI(), Header: header, Host: header.Get("Host"), Body: io.NopCloser(body),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: in.RequestContext.Identity.SourceIP,
	}
	return r.WithContext(ctx)
}

// response gathers what a handler answers.
type response struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *response) event() events.APIGatewayProxyResponse {
	w.WriteHeader(http.StatusOK)
	out := events.APIGatewayProxyResponse{StatusCode: w.status, Headers: map[string]string{}, Body: w.body.String()}
	for name := range w.header {
		out.Headers[name] = strings.Join(w.header.Values(name), ", ")
	}
	if !utf8.ValidString(out.Body) {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	return out
}
