package provider

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/gateway"
)

// rawServer serves every connection with handle and closes it after.
func rawServer(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer func() { _ = conn.Close() }(); handle(conn) }()
		}
	}()
	return "http://" + l.Addr().String()
}

// readRequest reads one request with its body, so that closing the connection after it does not reset it.
func readRequest(conn net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// reset makes Close send RST instead of FIN.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return "http://" + l.Addr().String()
}

func TestT1NothingWasSent(t *testing.T) {
	plain := rawServer(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n"); readRequest(conn) })
	dropped := rawServer(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 10)); reset(conn) })
	hung := rawServer(t, func(conn net.Conn) { _, _ = io.ReadAll(conn) })
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(untrusted.Close)
	tls := func(base string) string { return strings.Replace(base, "http:", "https:", 1) }

	for _, tt := range []struct{ name, base, says string }{
		{"connection refused", closedPort(t), "refused"},
		{"name not found", "http://no-such-host.invalid", "host name"}, // RFC 6761: .invalid never resolves
		{"certificate of an unknown authority", untrusted.URL, "unknown authority"},
		{"no TLS on the port", tls(plain), "TLS"},
		{"reset in the TLS handshake", tls(dropped), "connection"},
		{"TLS handshake never answered", tls(hung), "in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{}
			if tt.base == tls(hung) {
				o.DialTimeout = 300 * time.Millisecond
			}
			_, err := client(t, o).Send(t.Context(), request(tt.base))
			e := wantError(t, err, "NOT_SENT", false)
			if !strings.Contains(e.Message, tt.says) || !strings.Contains(e.Message, "nothing was sent") {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
}

func TestT1OnceSentTheMessageNeverClaimsOtherwise(t *testing.T) {
	answer := func(text string) func(net.Conn) {
		return func(conn net.Conn) { readRequest(conn); _, _ = io.WriteString(conn, text) }
	}
	for _, tt := range []struct {
		name   string
		handle func(net.Conn)
		code   string
		says   string
	}{
		{"reset before the request was read", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); reset(c) }, "CONNECTION_LOST", "may have arrived"},
		{"reset after the request was read", func(c net.Conn) { readRequest(c); reset(c) }, "CONNECTION_LOST", "may have arrived"},
		{"closed after the request was read", readRequest, "CONNECTION_LOST", "may have arrived"},
		{"garbage", answer("220 mail.example ESMTP s3cret\r\n\r\n"), "CONNECTION_LOST", "not an HTTP answer"},
		{"half a head", answer("HTTP/1.1 200 OK\r\nContent-Le"), "CONNECTION_LOST", "may have arrived"},
		{"half a body", answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":"), "BODY_CUT", "in the middle"},
		{"half a chunked body", answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), "BODY_CUT", "in the middle"},
		{"damaged gzip", answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 15\r\n\r\nhello, not gzip"), "BODY_CUT", "to its end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := client(t, Options{}).Send(t.Context(), request(rawServer(t, tt.handle)))
			e := wantError(t, err, tt.code, true)
			if !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message, "nothing was sent") {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
}

func TestTimeoutCoversTheExchange(t *testing.T) {
	drip := func(conn net.Conn) {
		readRequest(conn)
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil { // without end, and slow
			_, err = io.WriteString(conn, "x")
			time.Sleep(2 * time.Millisecond)
		}
	}
	for name, handle := range map[string]func(net.Conn){
		"no answer":    func(c net.Conn) { _, _ = io.ReadAll(c) },
		"endless body": drip,
	} {
		t.Run(name, func(t *testing.T) {
			req := request(rawServer(t, handle))
			req.Timeout = 200 * time.Millisecond
			_, err := client(t, Options{}).Send(t.Context(), req)
			e := wantError(t, err, "TIMEOUT", true)
			if !strings.Contains(e.Message, "within 200ms") {
				t.Errorf("message %q does not name the limit", e.Message)
			}
		})
	}
}

func TestEndlessFastBodyIsStoppedByItsSize(t *testing.T) {
	base := rawServer(t, func(conn net.Conn) {
		readRequest(conn)
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			_, err = conn.Write(make([]byte, 64<<10))
		}
	})
	_, err := client(t, Options{}).Send(t.Context(), request(base))
	wantError(t, err, "BODY_TOO_LARGE", true)
}

// One Send is one dispatch (Q7): net/http by itself would repeat each of these on a reused connection that fails.
func TestQ7ReusedConnectionIsNotRepeated(t *testing.T) {
	for name, change := range map[string]func(*gateway.Request){
		"GET":                       func(*gateway.Request) {},
		"POST with idempotency key": func(r *gateway.Request) { r.Method = "POST"; r.Header = http.Header{"Idempotency-Key": {"k"}} },
		"POST with idempotency and body": func(r *gateway.Request) {
			r.Method = "POST"
			r.Header = http.Header{"Idempotency-Key": {"k"}}
			r.Body = []byte("b")
		},
	} {
		for end, finish := range map[string]func(net.Conn){"reset": reset, "closed": func(net.Conn) {}} {
			t.Run(name+" "+end, func(t *testing.T) {
				var requests atomic.Int32
				base := rawServer(t, func(conn net.Conn) {
					in := bufio.NewReader(conn)
					for n := 0; ; n++ {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						_, _ = io.Copy(io.Discard, r.Body)
						requests.Add(1)
						if n == 1 {
							finish(conn)
							return
						}
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				})
				c := client(t, Options{})
				if _, err := c.Send(t.Context(), request(base)); err != nil {
					t.Fatal(err)
				}
				req := request(base)
				change(req)
				_, err := c.Send(t.Context(), req)
				wantError(t, err, "CONNECTION_LOST", true)
				if n := requests.Load(); n != 2 {
					t.Errorf("the provider saw %d requests, want 2", n)
				}
			})
		}
	}
}
