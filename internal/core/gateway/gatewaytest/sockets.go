package gatewaytest

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
)

// SocketDialTimeout is what the sender of RunSockets has to allow for connecting.
const SocketDialTimeout = 400 * time.Millisecond

// RunSockets checks what providers that misbehave on a real socket come to, through the gateway and the sender that is
// used in production.
func RunSockets(t *testing.T, open Open, s gateway.Sender) {
	t.Run("T1NothingWasSent", func(t *testing.T) { nothingSent(t, open, s) })
	t.Run("T2MayHaveArrived", func(t *testing.T) { mayHaveArrived(t, open, s) })
	t.Run("T3RedirectNamesItsTarget", func(t *testing.T) { redirect(t, open, s) })
	t.Run("H13EveryFormOfDeadline", func(t *testing.T) { deadlines(t, open, s) })
	t.Run("H14BareRefusal", func(t *testing.T) { bareOnSocket(t, open, s) })
}

// listen serves each connection by handle, and closes it after.
func listen(t *testing.T, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); handle(conn) }()
		}
	}()
	return l.Addr().String()
}

// read takes one request with its body from the connection.
func read(conn net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		io.Copy(io.Discard, r.Body)
	}
}

// reset makes the end of the connection an RST.
func reset(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }

// say answers a request with this text, byte for byte, and that the connection ends with it: a client that used it again
// could not know whether its next request was read.
func say(text string) func(net.Conn) {
	if strings.HasPrefix(text, "HTTP/") {
		text = strings.Replace(text, "\r\n", "\r\nConnection: close\r\n", 1)
	}
	return func(conn net.Conn) { read(conn); io.WriteString(conn, text) }
}

// at returns a gateway to the provider `it` at base, with an idempotent tool and one that is not.
func at(t *testing.T, open Open, s gateway.Sender, base string) call.Gateway {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte(`version: 1
providers:
  it: {url: "`+base+`", allowPrivate: true, limits: [{rate: 100000, per: 1s}], cooldown: 20s, resetHeaders: [x-reset]}
tools:
  it.get: {path: /secret-path, query: {token: t0ken}, timeout: 300ms, maxBody: 1KB}
  it.post: {method: POST, path: /secret-path, body: {a: 1}, timeout: 300ms, maxBody: 1KB}
`))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, c, s)
}

// ends is what a failure must come to.
type ends struct {
	name, base string
	get, post  call.Outcome
	code       string
	sent       bool
	says       string
}

func (e ends) check(t *testing.T, open Open, s gateway.Sender) {
	t.Run(e.name, func(t *testing.T) {
		for tool, want := range map[string]call.Outcome{"it.get": e.get, "it.post": e.post} {
			a := settle(t, at(t, open, s, e.base), attempt(tool, ""))[0]
			code := e.code
			if want == call.Unknown {
				code = call.OutcomeUnknown
			}
			if a.Error == nil || a.Outcome != want || a.Error.Code != code || a.Dispatched != e.sent || a.Error.Dispatched != e.sent {
				t.Errorf("%s: %+v %v; want %s %s, dispatched=%v", tool, a, a.Error, want, code, e.sent)
				continue
			}
			text := a.Error.Message
			if !strings.Contains(text, e.says) || strings.Contains(text, "nothing was sent") == e.sent {
				t.Errorf("%s: the message is %q, want %q in it", tool, text, e.says)
			}
			if strings.Contains(text, "t0ken") || strings.Contains(text, "secret-path") {
				t.Errorf("%s: the message shows the request: %q", tool, text)
			}
		}
	})
}

func nothingSent(t *testing.T, open Open, s gateway.Sender) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	for _, e := range []ends{
		{name: "refused", base: "http://" + gone.Addr().String(), says: "refused"},
		{name: "unreachable", base: "http://192.0.2.1:81", says: "http://192.0.2.1:81"}, // RFC 5737: nobody is there
		{name: "name not found", base: "http://nobody.invalid", says: "host name"},      // RFC 6761
		{name: "certificate", base: untrusted.URL, says: "unknown authority"},
		{name: "no TLS", base: "https://" + listen(t, say("220 mail.example\r\n")), says: "TLS"},
		{name: "reset in the handshake", base: "https://" + listen(t, func(c net.Conn) { c.Read(make([]byte, 9)); reset(c) }), says: "closed"},
		{name: "silent in the handshake", base: "https://" + listen(t, func(c net.Conn) { io.ReadAll(c) }), says: "in time"},
	} {
		e.get, e.post, e.code = call.Retry, call.Retry, "NOT_SENT"
		e.check(t, open, s)
	}
}

func mayHaveArrived(t *testing.T, open Open, s gateway.Sender) {
	endless := func(pause time.Duration) func(net.Conn) {
		return func(conn net.Conn) {
			read(conn)
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[1")
			for err == nil {
				time.Sleep(pause)
				_, err = io.WriteString(conn, ",1")
			}
		}
	}
	const lost, cut = "CONNECTION_LOST", "BODY_CUT"
	for _, e := range []struct {
		ends
		handle func(net.Conn)
	}{
		{ends{name: "reset before it was read", code: lost, says: "may have arrived"}, func(c net.Conn) { c.Read(make([]byte, 1)); reset(c) }},
		{ends{name: "reset after it was read", code: lost, says: "may have arrived"}, func(c net.Conn) { read(c); reset(c) }},
		{ends{name: "closed after it was read", code: lost, says: "may have arrived"}, read},
		{ends{name: "no HTTP", code: lost, says: "not an HTTP answer"}, say("hello t0ken\r\n\r\n")},
		{ends{name: "half a body", code: cut, says: "in the middle"}, say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"")},
		{ends{name: "half a chunk", code: cut, says: "in the middle"}, say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{\"a\"")},
		{ends{name: "a body that never ends", code: "TIMEOUT", says: "within 300ms"}, endless(20 * time.Millisecond)},
		{ends{name: "no answer", code: "TIMEOUT", says: "within 300ms"}, func(c net.Conn) { io.ReadAll(c) }},
		{ends{name: "garbage", code: "BROKEN_ANSWER", says: "not the JSON"},
			say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n<html>\r\n")},
		{ends{name: "a large body without end", code: "BODY_TOO_LARGE", get: call.Failed, post: call.Failed, says: "maxBody"}, endless(0)},
	} {
		e.base, e.sent = "http://"+listen(t, e.handle), true
		if e.get == "" {
			e.get, e.post = call.Retry, call.Unknown
		}
		e.check(t, open, s)
	}
}

func redirect(t *testing.T, open Open, s gateway.Sender) {
	hits := make(chan struct{}, 9)
	other := listen(t, func(c net.Conn) { hits <- struct{}{}; say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(c) })
	for _, status := range []string{"301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"} {
		ends{
			name: status, code: "REDIRECT", get: call.Failed, post: call.Failed, sent: true, says: " to http://" + other + " ",
			base: "http://" + listen(t, say("HTTP/1.1 "+status+"\r\nLocation: http://u:t0ken@"+other+"/secret-path\r\nContent-Length: 0\r\n\r\n")),
		}.check(t, open, s)
	}
	if len(hits) > 0 {
		t.Error("the redirect was followed")
	}
}

// deadlines: a provider says in every known form that it may be asked again in 30 s, also where its clock is wrong.
func deadlines(t *testing.T, open Open, s gateway.Sender) {
	in30 := func(skew time.Duration) time.Time { return time.Now().Add(skew + 30*time.Second).UTC() }
	date := func(skew time.Duration) string {
		return "Date: " + time.Now().Add(skew).UTC().Format(http.TimeFormat) + "\r\n"
	}
	const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"
	const skew = 7 * time.Minute
	for name, head := range map[string]func() string{
		"seconds":                    func() string { return "Retry-After: 30" },
		"decimal":                    func() string { return "Retry-After: 29.75" },
		"seconds of a wrong clock":   func() string { return date(skew) + "Retry-After: 30" },
		"IMF date":                   func() string { return "Retry-After: " + in30(0).Format(http.TimeFormat) },
		"RFC 850 date":               func() string { return "Retry-After: " + in30(0).Format(rfc850) },
		"asctime date":               func() string { return "Retry-After: " + in30(0).Format(time.ANSIC) },
		"date of a clock ahead":      func() string { return date(skew) + "Retry-After: " + in30(skew).Format(http.TimeFormat) },
		"date of a clock behind":     func() string { return date(-skew) + "Retry-After: " + in30(-skew).Format(rfc850) },
		"milliseconds":               func() string { return "retry-after-ms: 30000" },
		"reset in seconds":           func() string { return "X-Reset: 30" },
		"reset at epoch seconds":     func() string { return fmt.Sprintf("X-Reset: %d", in30(0).Unix()) },
		"reset at epoch ms":          func() string { return fmt.Sprintf("X-Reset: %d", in30(0).UnixMilli()) },
		"reset ms of a clock behind": func() string { return date(-skew) + fmt.Sprintf("X-Reset: %d", in30(-skew).UnixMilli()) },
		"reset as a duration":        func() string { return "X-Reset: 0m30s" },
		"unusable, then a reset":     func() string { return "Retry-After: later\r\nX-Reset: 30" },
	} {
		t.Run(name, func(t *testing.T) {
			base := "http://" + listen(t, func(c net.Conn) {
				say("HTTP/1.1 429 Too Many Requests\r\n" + head() + "\r\nContent-Length: 0\r\n\r\n")(c)
			})
			g := at(t, open, s, base)
			before := time.Now()
			a := settle(t, g, attempt("it.post", ""))[0]
			if a.Outcome != call.Held || !a.Dispatched || a.Charged || a.Status != 429 {
				t.Fatalf("%+v", a)
			}
			// Dates have whole seconds, and the two of a wrong clock may be cut a second apart.
			if wait := a.Until.Sub(before); wait < 28*time.Second || wait > 32*time.Second {
				t.Errorf("held for %v, want 30 s", wait)
			}
			if next := execute(t, g, attempt("it.get", ""))[0]; next.Outcome != call.Refused || next.Dispatched {
				t.Errorf("the scope is not held: %+v", next)
			}
		})
	}
}

func bareOnSocket(t *testing.T, open Open, s gateway.Sender) {
	for name, head := range map[string]string{
		"nothing": "", "garbage": "Retry-After: soon\r\n", "negative": "Retry-After: -1\r\n", "past": "Retry-After: Sun, 01 Mar 2020 12:00:00 GMT\r\n",
		"too far": "Retry-After: 99999999\r\n", "not declared": "X-Other-Reset: 1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := at(t, open, s, "http://"+listen(t, say("HTTP/1.1 429 Too Many\r\n"+head+"Content-Length: 0\r\n\r\n")))
			before := time.Now()
			a := settle(t, g, attempt("it.post", ""))[0]
			if wait := a.Until.Sub(before); a.Outcome != call.Held || wait < 20*time.Second || wait > 26*time.Second {
				t.Errorf("%s for %v; want held for the provider's cooldown of 20 s and jitter", a.Outcome, wait)
			}
		})
	}
}
