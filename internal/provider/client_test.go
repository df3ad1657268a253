package provider

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/gateway"
)

// request is a GET that carries a secret in its query, as a provider with `auth: {query: ...}` does.
func request(base string) *gateway.Request {
	u, _ := url.Parse(base)
	return &gateway.Request{
		URL: base + "/x?api_key=s3cret", Timeout: 5 * time.Second, MaxBody: 1 << 20,
		Egress: gateway.Egress{Host: u.Host, AllowPrivate: true},
	}
}

// wantError checks the code, whether anything was sent, and that no secret is in the message.
func wantError(t *testing.T, err error, code string, sent bool) *gateway.SendError {
	t.Helper()
	var e *gateway.SendError
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want *gateway.SendError", err, err)
	}
	if e.Code != code || e.Sent != sent {
		t.Errorf("got %s sent=%v (%s), want %s sent=%v", e.Code, e.Sent, e.Message, code, sent)
	}
	for _, leak := range []string{"s3cret", "api_key", "?"} {
		if strings.Contains(e.Message, leak) {
			t.Errorf("message %q contains %q", e.Message, leak)
		}
	}
	return e
}

func client(t *testing.T, o Options) *Client {
	c := New(o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func server(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestSendReturnsTheAnswer(t *testing.T) {
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Saw", r.Method+" "+r.RequestURI+" "+r.Header.Get("X-A")+" "+r.UserAgent())
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte("got "), body...))
	})
	req := request(base)
	req.Method, req.Body, req.Header = "POST", []byte("hello"), http.Header{"X-A": {"1"}}
	res, err := client(t, Options{}).Send(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != 418 || string(res.Body) != "got hello" || res.Header.Get("X-Saw") != "POST /x?api_key=s3cret 1 sluice" {
		t.Errorf("got %d %q %q", res.Status, res.Body, res.Header.Get("X-Saw"))
	}
}

func TestSendReusesConnections(t *testing.T) {
	addrs := map[string]bool{}
	base := server(t, func(_ http.ResponseWriter, r *http.Request) { addrs[r.RemoteAddr] = true })
	c := client(t, Options{})
	for range 5 {
		if _, err := c.Send(t.Context(), request(base)); err != nil {
			t.Fatal(err)
		}
	}
	if len(addrs) != 1 {
		t.Errorf("5 exchanges used %d connections", len(addrs))
	}
}

// Who wants to know hears when a request leaves: once a connection is there, and before the server has it.
func TestSendTellsWhenTheRequestLeaves(t *testing.T) {
	var arrived time.Time
	base := server(t, func(http.ResponseWriter, *http.Request) { arrived = time.Now() })
	c := client(t, Options{})
	for range 2 { // over a new connection, and over the same again
		var left []time.Time
		req := request(base)
		req.Leaves = func() { left = append(left, time.Now()) }
		if _, err := c.Send(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 || left[0].After(arrived) {
			t.Errorf("left %v, arrived %v", left, arrived)
		}
	}
	req := request("http://127.0.0.1:1") // nobody is there
	req.Leaves = func() { t.Error("a request left without a connection") }
	if _, err := c.Send(t.Context(), req); err == nil {
		t.Error("sent")
	}
}

func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	res, err := client(t, Options{RootCAs: roots(s)}).Send(t.Context(), request(s.URL))
	if err != nil || string(res.Body) != "HTTP/2.0" {
		t.Fatalf("got %v, %v", res, err)
	}
}

// The hooks that start the clock and count the bytes work on HTTP/2 too, on a new connection and on a shared one.
func TestHTTP2Failures(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Do") {
		case "hang":
			<-release
		case "abort":
			panic(http.ErrAbortHandler)
		case "cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "abc")
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	c := client(t, Options{RootCAs: roots(s)})
	for _, tt := range []struct{ do, code string }{
		{"hang", "TIMEOUT"}, {"abort", "CONNECTION_LOST"}, {"cut", "BODY_CUT"}, {"hang", "TIMEOUT"},
	} {
		req := request(s.URL)
		req.Header = http.Header{"X-Do": {tt.do}}
		if tt.do == "hang" {
			req.Timeout = 200 * time.Millisecond
		}
		_, err := c.Send(t.Context(), req)
		wantError(t, err, tt.code, true)
	}
}

func roots(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

func TestT3RedirectIsRefused(t *testing.T) {
	for _, tt := range []struct{ location, names string }{
		{"https://user:pw@other.example/secret/path?token=t0p", "https://other.example "},
		{"/elsewhere?token=t0p", "http://127.0.0.1"},
		{"http://%zz/", "an address that cannot be read"},
	} {
		calls := 0
		base := server(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.Header().Set("Location", tt.location)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, err := client(t, Options{}).Send(t.Context(), request(base))
		e := wantError(t, err, "REDIRECT", true)
		if !strings.Contains(e.Message, tt.names) {
			t.Errorf("message %q does not name %q", e.Message, tt.names)
		}
		for _, leak := range []string{"t0p", "pw@", "path"} {
			if strings.Contains(e.Message, leak) {
				t.Errorf("message %q contains %q", e.Message, leak)
			}
		}
		if calls != 1 || e.Response.Status != 307 || e.Response.Header.Get("Location") != "" {
			t.Errorf("%d calls, answer %+v", calls, e.Response)
		}
	}
}

func TestNotModifiedIsAnAnswer(t *testing.T) {
	base := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	res, err := client(t, Options{}).Send(t.Context(), request(base))
	if err != nil || res.Status != 304 {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestM6BodyLimit(t *testing.T) {
	const limit = 1000
	zipped := func(n int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(make([]byte, n))
		_ = z.Close()
		return b.Bytes()
	}
	tests := []struct {
		name string
		body []byte
		gzip bool
		ok   bool
	}{
		{"at the limit", make([]byte, limit), false, true},
		{"over the limit", make([]byte, limit+1), false, false},
		{"zipped, expands to the limit", zipped(limit), true, true},
		{"zipped, small, expands past it", zipped(5_000_000), true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := server(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				if tt.gzip {
					if r.Header.Get("Accept-Encoding") != "gzip" {
						t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
					}
					w.Header().Set("Content-Encoding", "gzip")
				}
				_, _ = w.Write(tt.body)
			})
			req := request(base)
			req.MaxBody = limit
			res, err := client(t, Options{}).Send(t.Context(), req)
			if tt.ok {
				if err != nil || len(res.Body) != limit {
					t.Fatalf("got %v", err)
				}
				return
			}
			e := wantError(t, err, "BODY_TOO_LARGE", true)
			if e.Response == nil || e.Response.Header.Get("Retry-After") != "7" {
				t.Errorf("the head of the answer is lost: %+v", e.Response)
			}
		})
	}
}

func TestR10CancelIsImmediate(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	base := server(t, func(http.ResponseWriter, *http.Request) { close(started); <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := client(t, Options{}).Send(ctx, request(base))
	wantError(t, err, "CANCELLED", true)

	_, err = client(t, Options{}).Send(ctx, request(base))
	wantError(t, err, "CANCELLED", false)
}

func TestCancelWhileReadingTheBody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	base := rawServer(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
		cancel()
		_, _ = io.ReadAll(conn)
	})
	_, err := client(t, Options{}).Send(ctx, request(base))
	wantError(t, err, "CANCELLED", true)
}
