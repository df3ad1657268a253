package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"sluice/internal/core/gateway"
)

// receive reads the answer's body, within the limits, when there is room for it (M6).
func (x *exchange) receive(res *http.Response) (*gateway.Response, error) {
	defer func() { _ = res.Body.Close() }() // also of a body that nobody reads
	out := &gateway.Response{Status: res.StatusCode, Header: res.Header}
	if redirects(res.StatusCode) {
		return nil, x.redirect(out)
	}
	limit := cmp.Or(x.req.MaxBody, DefaultMaxBody)
	if x.req.Method == http.MethodHead {
		return out, nil
	}
	var err error
	if res.ContentLength >= 0 {
		out.Body, err = x.whole(res, limit)
	} else {
		out.Body, err = x.unmeasured(res, limit)
	}
	x.req.Turn.Measured(int64(len(out.Body)))
	if errors.Is(err, errLarge) {
		x.req.Turn.Refused()
		out.Body = nil
		return nil, x.tooLarge(out, limit)
	}
	if err != nil {
		out.Body = nil
		return nil, x.broken(out, err)
	}
	return out, nil
}

// errLarge: the body is longer than it may be.
var errLarge = errors.New("body too large")

// whole reads a body of which the length is known.
func (x *exchange) whole(res *http.Response, limit int64) ([]byte, error) {
	n := res.ContentLength
	if n > min(limit, x.req.Turn.Most()) {
		return nil, errLarge
	}
	if err := x.take(n); err != nil {
		return nil, err
	}
	body := make([]byte, n)
	got, err := io.ReadFull(res.Body, body)
	return body[:got], err
}

// unmeasured reads a body whose length shows when it ends. What is counted is what comes out of gzip, which net/http asks
// for and undoes: a small answer that expands without end is stopped at the limit like any other.
func (x *exchange) unmeasured(res *http.Response, limit int64) ([]byte, error) {
	limit = min(limit, x.req.Turn.Most())
	first := min(limit, gateway.FirstPart)
	if err := x.take(first); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, first+1)) // a byte more shows that there is more
	if err != nil || int64(len(body)) <= first {
		return body, err
	}
	if err := x.take(limit - first); err != nil {
		return body, err
	}
	rest, err := io.ReadAll(io.LimitReader(res.Body, limit-first))
	if body = append(body, rest...); int64(len(body)) > limit {
		return body, errLarge
	}
	return body, err
}

// take waits for room. The tool's time limit is that of its provider, and stands still meanwhile.
func (x *exchange) take(n int64) error {
	err := x.req.Turn.Take(x.ctx, n, func() (done func()) {
		x.pause()
		return x.resume
	})
	if err != nil && x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return err
}

func (x *exchange) tooLarge(res *gateway.Response, limit int64) *gateway.SendError {
	allowed := fmt.Sprintf("the %d bytes that the tool's maxBody allows", limit)
	if most := x.req.Turn.Most(); most < limit {
		allowed = fmt.Sprintf("the %d bytes that this process sets aside for answers (SLUICE_BODY_MEMORY)", most)
	}
	return &gateway.SendError{Code: codeBodyTooLarge, Sent: true, Response: res,
		Message: fmt.Sprintf("%s: the answer (status %d) is larger than %s", origin(x.url), res.Status, allowed)}
}
