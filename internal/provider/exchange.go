package provider

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"sluice/internal/core/gateway"
)

var (
	errTimeout = errors.New("exchange timed out")
	errRepeat  = errors.New("a second dispatch was about to be made")
)

// exchange is one Send under way. net/http calls the trace hooks used here on the goroutine that called RoundTrip,
// so its fields need no lock.
type exchange struct {
	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	req    *gateway.Request
	url    *url.URL
	timer  *time.Timer
	until  time.Time     // when the timer fires
	left   time.Duration // what was left of it when it was paused
	conn   *countedConn  // the connection that the request was given to
	start  int64         // bytes that had been written to it by then

	multiplexed bool // the connection carries other requests at the same time (HTTP/2)
}

func newExchange(ctx context.Context, req *gateway.Request, u *url.URL) *exchange {
	x := &exchange{caller: ctx, req: req, url: u}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.ctx = httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{GotConn: x.gotConn})
	return x
}

func (x *exchange) limit() time.Duration { return cmp.Or(x.req.Timeout, DefaultTimeout) }

// end releases what the exchange holds.
func (x *exchange) end() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel(nil)
}

// gotConn is called when a connection is about to carry the request. The time limit starts here.
//
// It is called again when net/http repeats the request by itself: it does so when a reused connection fails and the
// method is safe or an idempotency key is present, even after the request was written. If a byte was written the
// repeat would be a second dispatch that nobody counts, so it is stopped here.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	conn, multiplexed := counted(info.Conn)
	if x.wrote() {
		x.cancel(errRepeat)
		if !multiplexed {
			// HTTP/1 writes to its connection without looking at the context again. HTTP/2 does look.
			_ = info.Conn.Close()
		}
		return
	}
	x.conn, x.multiplexed = conn, multiplexed
	if conn != nil {
		x.start = conn.written.Load()
	}
	if x.timer == nil {
		x.until = time.Now().Add(x.limit())
		x.timer = time.AfterFunc(x.limit(), func() { x.cancel(errTimeout) })
		if x.req.Leaves != nil {
			x.req.Leaves()
		}
	}
}

// pause stops the clock while this process keeps the provider waiting, and not the other way round.
func (x *exchange) pause() {
	x.left = time.Until(x.until)
	x.timer.Stop()
}

func (x *exchange) resume() {
	x.until = time.Now().Add(x.left)
	x.timer.Reset(max(x.left, 0))
}

// wrote reports whether bytes went out on the exchange's connection since the request was given to it.
func (x *exchange) wrote() bool { return x.conn != nil && x.conn.written.Load() > x.start }

// sent reports whether a byte of the request may have left. It is called when RoundTrip has returned. By then HTTP/1
// has stopped writing, and the count is exact. On HTTP/2 the bytes of other requests count too, and one that was
// cancelled may just be going out: there the answer errs on the side of "yes".
func (x *exchange) sent() bool { return x.wrote() || x.multiplexed && x.ctx.Err() != nil }

// redirects reports whether a status names another address to ask. 300 and 304 do not.
func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// countedConn counts the bytes written to a connection. For TLS it lies under the encryption, so a count that did not
// move proves that nothing left.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// counted finds the counter below a connection, and tells whether several requests share it.
func counted(conn net.Conn) (c *countedConn, multiplexed bool) {
	if t, ok := conn.(*tls.Conn); ok {
		multiplexed = t.ConnectionState().NegotiatedProtocol == "h2"
		conn = t.NetConn()
	}
	c, _ = conn.(*countedConn)
	return c, multiplexed
}

func (x *exchange) redirect(res *gateway.Response) *gateway.SendError {
	target := "an address that cannot be read"
	if u, err := x.url.Parse(res.Header.Get("Location")); err == nil && u.Host != "" {
		target = origin(u)
	}
	res.Header.Del("Location") // it may carry a token
	return &gateway.SendError{
		Code: codeRedirect, Sent: true, Response: res,
		Message: fmt.Sprintf("%s redirects to %s (status %d); redirects are not followed, because that could repeat a "+
			"delivered request: put the final address into the provider's url", origin(x.url), target, res.Status),
	}
}
