package provider_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/memory"
	"sluice/internal/provider"
)

// Attempts to break out (T7): through what a row holds, through names that lead inside, and through the token endpoint.

// prison is an executor over the real client, with the catalogue.
func prison(t *testing.T, o provider.Options, catalogue string) *gateway.Executor {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte(catalogue))
	if err != nil {
		t.Fatal(err)
	}
	o.DialTimeout = gatewaytest.SocketDialTimeout
	client := provider.New(o)
	t.Cleanup(client.CloseIdleConnections)
	return gateway.New(gateway.Config{Catalogue: c, Sender: client, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test")})
}

func one(t *testing.T, e *gateway.Executor, tool string, input any) (a call.Answer) {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	for again := true; again; again = a.Outcome == call.Refused { // on a machine that is busy with other things
		if err := e.Execute(t.Context(), []call.Attempt{{Tool: tool, Input: raw}}, func(_ int, got call.Answer) { a = got }); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// inside is a server that must not be reached.
func inside(t *testing.T) (port string, reached *atomic.Int32) {
	t.Helper()
	reached = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	return u.Port(), reached
}

// nowhere is a public address that nobody has: no part of 2000::/16 is given out.
var nowhere = netip.MustParseAddr("2000::1")

// escapes are what a row may hold.
var escapes = []string{
	"evil.example", "//evil.example/", "@evil.example", "x@evil.example:80/", ":80@evil.example", "http://evil.example/", "..", "../..", "../../etc", "..%2f..%2f",
	"%2e%2e", "%2E%2E/x", ".", "a/b", "a%2fb", `..\..\x`, `\\evil.example\x`, "?admin=1", "&admin=1", "#", "x#/y", "a b", "a\r\nHost: evil.example", "a\nX-Evil: 1",
	"a\r\n\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n", "a HTTP/1.1\r\nX: y", "\x00", "\x7f", "é\u2028", "\ufeff", "{x}", "${secret}", "${1+1}", "%0d%0aX-Evil:1", ";x=y", "'\"<>",
	strings.Repeat("x", 4000),
}

// T7: whatever a row holds, the provider sees one request to its host, with the value in its place and nowhere else.
func TestT7RowValuesStayInTheirPlace(t *testing.T) {
	type seen struct{ host, path, query, header, body, evil string }
	var mu sync.Mutex
	var got []seen
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, seen{r.Host, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("X-Row"), string(body), r.Header.Get("X-Evil")})
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	e := prison(t, provider.Options{}, `version: 1
providers:
  p: {url: "`+s.URL+`/v1", allowPrivate: true, limits: [{rate: 100000, per: 1s}]}
tools:
  p.path: {path: "/a/{x}/z", input: {x: string}}
  p.query: {path: /q, query: {x: "${input.x}", fixed: f}, input: {x: string}}
  p.header: {path: /h, headers: {X-Row: "${input.x}"}, input: {x: string}}
  p.body: {method: POST, path: /b, body: {x: "${input.x}"}, input: {x: string}}
`)
	for _, x := range escapes {
		for _, tool := range []string{"p.path", "p.query", "p.header", "p.body"} {
			got = nil
			a := one(t, e, tool, map[string]string{"x": x})
			name := fmt.Sprintf("%s of %.40q", tool, x)
			if a.Outcome == call.Failed && a.Error.Code == "BAD_INPUT" && !a.Dispatched && len(got) == 0 && tool != "p.query" && tool != "p.body" {
				continue // said to be impossible, before anything was sent
			}
			if len(got) != 1 || a.Outcome != call.Result {
				t.Errorf("%s: %d requests, %s %v", name, len(got), a.Outcome, a.Error)
				continue
			}
			r := got[0]
			if r.host != host || r.evil != "" || tool != "p.query" && r.query != "" || tool != "p.header" && r.header != "" {
				t.Errorf("%s: %+v", name, r)
			}
			var arrived string
			switch tool {
			case "p.path":
				segments := strings.Split(r.path, "/")
				if len(segments) != 5 || segments[1] != "v1" || segments[2] != "a" || segments[4] != "z" {
					t.Errorf("%s: path %s", name, r.path)
					continue
				}
				arrived, _ = url.PathUnescape(segments[3])
			case "p.query":
				q, err := url.ParseQuery(r.query)
				if err != nil || len(q) != 2 || len(q["x"]) != 1 || q.Get("fixed") != "f" {
					t.Errorf("%s: query %s", name, r.query)
				}
				arrived = q.Get("x")
			case "p.header":
				arrived = r.header
			case "p.body":
				var body map[string]string
				if err := json.Unmarshal([]byte(r.body), &body); err != nil || len(body) != 1 {
					t.Errorf("%s: body %s", name, r.body)
				}
				arrived = body["x"]
			}
			if arrived != x {
				t.Errorf("%s: it arrived as %.40q", name, arrived)
			}
		}
	}
}

// names is a name server: it answers for each name with what answer says of its n-th question, from 0.
func names(t *testing.T, answer func(name string, nth int) netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		asked := map[string]int{}
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			conn.WriteTo(reply(buf[:n], func(name string, kind uint16) (netip.Addr, bool) {
				key := fmt.Sprint(name, kind)
				a := answer(name, asked[key])
				asked[key]++
				return a, a.Is4() == (kind == 1) // of an IPv4-mapped address, Is4 is false
			}), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// reply is the answer to one question (RFC 1035, section 4): at most one address.
func reply(question []byte, of func(name string, kind uint16) (netip.Addr, bool)) []byte {
	at, labels := 12, []string(nil)
	for question[at] != 0 {
		n := int(question[at])
		labels = append(labels, string(question[at+1:at+1+n]))
		at += 1 + n
	}
	kind := binary.BigEndian.Uint16(question[at+1:])
	out := append([]byte(nil), question[:at+5]...)
	copy(out[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, without errors, of one question
	a, ok := of(strings.Join(labels, "."), kind)
	if !ok {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
	return append(out, a.AsSlice()...)
}

// T7: a name that leads inside is refused by the address that is about to be connected to. Nothing is sent.
func TestT7NamesThatLeadInside(t *testing.T) {
	port, reached := inside(t)
	for _, address := range []string{
		"127.0.0.1", "127.1.2.3", "::1", "169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "::ffff:127.0.0.1", "10.0.0.1", "192.168.0.1", "172.16.9.9",
		"0.0.0.0", "::", "100.100.100.200", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "fe80::1", "fd12::1", "3fff::1", "4000::1", "192.88.99.1", "224.0.0.1", "255.255.255.255",
	} {
		t.Run(address, func(t *testing.T) {
			o := provider.Options{Resolver: names(t, func(string, int) netip.Addr { return netip.MustParseAddr(address) })}
			e := prison(t, o, tool("http://looks-public.example:"+port, false))
			a := one(t, e, "p.get", map[string]any{})
			if a.Outcome != call.Failed || a.Error.Code != "EGRESS_DENIED" || a.Dispatched {
				t.Errorf("%+v %v", a, a.Error)
			}
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the inside was reached %d times", n)
	}
}

func tool(base string, allowPrivate bool) string {
	return fmt.Sprintf("version: 1\nproviders:\n  p: {url: %q, allowPrivate: %v, limits: [{rate: 100000, per: 1s}]}\ntools:\n  p.get: {path: /x, timeout: 1s}\n", base, allowPrivate)
}

// T7: a name that is public when it is looked at and leads inside when it is connected to is refused then: what is checked
// is the address of the connection, not an answer of before.
func TestT7RebindingNames(t *testing.T) {
	port, reached := inside(t)
	var asked atomic.Int32
	resolver := names(t, func(_ string, nth int) netip.Addr {
		asked.Store(int32(nth + 1))
		if nth == 0 {
			return nowhere
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	e := prison(t, provider.Options{Resolver: resolver}, tool("http://rebinds.example:"+port, false))
	if a := one(t, e, "p.get", map[string]any{}); a.Error == nil || a.Error.Code != "NOT_SENT" {
		t.Errorf("the public address: %+v %v", a, a.Error)
	}
	for range 3 {
		if a := one(t, e, "p.get", map[string]any{}); a.Error == nil || a.Error.Code != "EGRESS_DENIED" || a.Dispatched {
			t.Errorf("%+v %v", a, a.Error)
		}
	}
	if reached.Load() > 0 || asked.Load() < 3 {
		t.Errorf("the inside was reached %d times, the name was asked for %d times", reached.Load(), asked.Load())
	}
}

// T7: other ways to write an address that is inside. Whether the system's resolver knows them or not, nothing is sent.
func TestT7OddlyWrittenAddresses(t *testing.T) {
	port, reached := inside(t)
	for _, host := range []string{
		"2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "127.1", "127.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "localhost",
		"LOCALHOST", "localhost.", "127.0.0.1.", "[::1]", "0", "0.0.0.0", "[::]", "2852039166", "169.254.43518", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "[fe80::1]",
	} {
		e := prison(t, provider.Options{}, tool("http://"+host+":"+port, false))
		a := one(t, e, "p.get", map[string]any{})
		if a.Dispatched || a.Outcome == call.Result || a.Error == nil || a.Error.Code != "EGRESS_DENIED" && a.Error.Code != "NOT_SENT" {
			t.Errorf("%s: %+v %v", host, a, a.Error)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the inside was reached %d times", n)
	}
}

// T7: the token endpoint is held to the same: its own host, no inside, no redirect. The client's secret goes nowhere else.
func TestT7TokenEndpoint(t *testing.T) {
	port, reached := inside(t)
	elsewhere := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port+"/token", http.StatusTemporaryRedirect))
	t.Cleanup(elsewhere.Close)
	resolver := names(t, func(string, int) netip.Addr { return netip.MustParseAddr("169.254.169.254") })
	for _, tt := range []struct {
		name, tokenURL, code string
		allowPrivate         bool
	}{
		{"loopback", "https://127.0.0.1:" + port + "/token", "EGRESS_DENIED", false},
		{"a name that leads inside", "https://login.example:" + port + "/token", "EGRESS_DENIED", false},
		{"a redirect", elsewhere.URL + "/token", "AUTH_FAILED", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := prison(t, provider.Options{Resolver: resolver}, fmt.Sprintf(`version: 1
providers:
  p: {url: "https://api.example", allowPrivate: %v, auth: {oauth2: {tokenURL: %q, clientID: c}, secret: "env:K"}}
tools:
  p.get: {path: /x}
`, tt.allowPrivate, tt.tokenURL))
			a := one(t, e, "p.get", map[string]any{})
			if a.Outcome != call.Failed || a.Error.Code != tt.code || a.Dispatched || strings.Contains(a.Error.Message, gatewaytest.Secret) {
				t.Errorf("%+v %v", a, a.Error)
			}
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the inside was reached %d times", n)
	}
}

// T7: a proxy of the environment would connect where the address cannot be checked.
func TestT7ProxiesAreNotUsed(t *testing.T) {
	port, reached := inside(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+port)
	t.Setenv("ALL_PROXY", "http://127.0.0.1:"+port)
	resolver := names(t, func(string, int) netip.Addr { return nowhere })
	start := time.Now()
	a := one(t, prison(t, provider.Options{Resolver: resolver}, tool("http://api.example", false)), "p.get", map[string]any{})
	if a.Outcome != call.Retry || a.Error.Code != "NOT_SENT" || reached.Load() > 0 {
		t.Errorf("%+v %v after %v", a, a.Error, time.Since(start))
	}
}
