// Package provider performs HTTP exchanges with providers. It owns one exchange: the connection, what may be
// connected to, the exact question whether a byte of the request left, the time limit and the size limit.
//
// It refuses everything that would make one Send more than one dispatch, or a dispatch to somewhere else: it follows
// no redirect, uses no proxy, keeps no cookie, and repeats nothing after a byte was written. Retries, rates,
// credentials and the meaning of an answer belong to the gateway.
package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice/internal/core/gateway"
)

const (
	// DefaultDialTimeout bounds name resolution plus TCP connect, and then the TLS handshake. It is no part of a
	// tool's timeout, which covers the exchange alone.
	DefaultDialTimeout = 10 * time.Second
	// DefaultMaxBody is used for requests that set no limit.
	DefaultMaxBody = 5 << 20
	// DefaultTimeout is used for requests that set none.
	DefaultTimeout = 20 * time.Second

	// maxHeader bounds the answer's headers; real providers stay below 32 KB.
	maxHeader = 256 << 10
	// idlePerHost is above the concurrency of any one scope, so that calls under way reuse their connections.
	idlePerHost = 256
	// idleTimeout is below the 60 s after which common load balancers close idle connections, so that we seldom
	// write into a connection that the other side is just closing.
	idleTimeout = 50 * time.Second
)

// Options of a Client. The zero value is ready for production.
type Options struct {
	DialTimeout time.Duration  // default DefaultDialTimeout
	UserAgent   string         // sent unless the request has its own; default "sluice"
	RootCAs     *x509.CertPool // nil: the system's
	Resolver    *net.Resolver  // nil: the system's
	// OnlyPublic refuses private addresses whatever a request allows: where others write the tool files, what may be
	// reached inside is not theirs to decide.
	OnlyPublic bool
}

// Client is a gateway.Sender over net/http. It is safe for concurrent use.
type Client struct {
	// Two connection pools, because pooled connections are shared by host: one that was allowed to reach a private
	// address must never serve a request that is not.
	public, private *http.Transport
	onlyPublic      bool
	userAgent       string
}

var _ gateway.Sender = (*Client)(nil)

// New returns a Client.
func New(o Options) *Client {
	return &Client{
		public:     newTransport(o, refusePrivate),
		private:    newTransport(o, nil),
		onlyPublic: o.OnlyPublic,
		userAgent:  cmp.Or(o.UserAgent, "sluice"),
	}
}

func newTransport(o Options, control controlFunc) *http.Transport {
	timeout := cmp.Or(o.DialTimeout, DefaultDialTimeout)
	dialer := &net.Dialer{Timeout: timeout, Resolver: o.Resolver, Control: control}
	return &http.Transport{
		Proxy: nil, // a proxy would connect where the egress check cannot see
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConn{Conn: conn}, nil
		},
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    timeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		// A silent HTTP/2 connection is probed, lest every call on it runs into its timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// CloseIdleConnections closes connections that serve no exchange.
func (c *Client) CloseIdleConnections() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

// Send performs one exchange. Statuses are not judged, except that a redirect is an error (T3). The error is always
// a *gateway.SendError; where the answer's head was received, it carries status and headers without the body, so
// that a provider's Retry-After is not lost with a cut body.
func (c *Client) Send(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	if ctx.Err() != nil {
		return nil, cancelled("before the request was sent", false)
	}
	u, fault := checkRequest(req)
	if fault != nil {
		return nil, fault
	}
	x := newExchange(ctx, req, u)
	defer x.end()
	res, err := c.transport(req).RoundTrip(c.httpRequest(x)) //nolint:bodyclose // receive closes it
	if err != nil {
		return nil, x.failure(err)
	}
	return x.receive(res)
}

func (c *Client) transport(req *gateway.Request) *http.Transport {
	if req.Egress.AllowPrivate && !c.onlyPublic {
		return c.private
	}
	return c.public
}

func (c *Client) httpRequest(x *exchange) *http.Request {
	h := x.req.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	// Compression is this package's affair: with a header of the tool's own, net/http would leave the body packed.
	h.Del("Accept-Encoding")
	if len(h.Values("User-Agent")) == 0 {
		h.Set("User-Agent", c.userAgent)
	}
	r := &http.Request{
		Method: cmp.Or(x.req.Method, http.MethodGet), URL: x.url, Host: x.url.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(x.req.Body) > 0 {
		// GetBody stays nil: net/http then has no second copy to send.
		r.Body = readOnly{bytes.NewReader(x.req.Body)}
		r.ContentLength = int64(len(x.req.Body))
	}
	return r.WithContext(x.ctx)
}

// readOnly hides the reader's other methods, and has nothing to close.
type readOnly struct{ r *bytes.Reader }

func (b readOnly) Read(p []byte) (int, error) { return b.r.Read(p) }
func (b readOnly) Close() error               { return nil }

// origin is all of an URL that a message may show.
func origin(u *url.URL) string {
	const longest = 120 // a provider chooses the target of its redirect, and must not fill a log with it
	s := strings.ToValidUTF8(u.Scheme+"://"+u.Host, "?")
	s = strings.Map(printable, s)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}

func printable(r rune) rune {
	if r <= ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 || (r >= 0x202a && r <= 0x202e) {
		return '?'
	}
	return r
}
