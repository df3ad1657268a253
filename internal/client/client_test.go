package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/start"
)

// script answers requests in order: a status with a body, or an error.
type script struct {
	t     *testing.T
	lines []any // *http.Response, error
	asked []time.Time
	keys  []string // under which it was asked
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	n := len(s.asked)
	s.asked, s.keys = append(s.asked, time.Now()), append(s.keys, req.Method+" "+req.URL.Path+" "+req.Header.Get("Idempotency-Key"))
	if n >= len(s.lines) {
		s.t.Fatalf("request %d: %s %s", n+1, req.Method, req.URL)
	}
	if err, ok := s.lines[n].(error); ok {
		return nil, err
	}
	return s.lines[n].(*http.Response), nil
}

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func scripted(t *testing.T, lines ...any) (*Client, *script) {
	t.Helper()
	c, err := New("https://api.example/v1", "k", "test")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, lines: lines}
	c.http.Transport = s
	return c, s
}

var (
	refused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	cut     = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	busy    = `{"error":{"code":"TOO_MANY_REQUESTS","message":"slow down"}}`
)

func TestFailuresThatPassAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, answer(429, busy, "Retry-After", "20"), answer(502, ""), cut, refused, answer(200, `{"run":"r"}`))
		began := time.Now()
		if v, err := c.Run(t.Context(), "r"); err != nil || v.Run != "r" {
			t.Fatal(v, err)
		}
		if wait := s.asked[1].Sub(began); wait != 20*time.Second {
			t.Errorf("it was asked again after %v, not after the 20 s that were asked for", wait)
		}
		for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if wait := s.asked[i+2].Sub(s.asked[i+1]); wait < least || wait > least*3/2 {
				t.Errorf("wait %d is %v, want %v and at most half of it more", i+2, wait, least)
			}
		}
	})
}

func TestWhoNeverAnsweredIsAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, refused, refused)
		if _, err := c.Run(t.Context(), "r"); !errors.Is(err, syscall.ECONNREFUSED) || len(s.asked) != 2 {
			t.Error(err, len(s.asked))
		}
	})
}

func TestWhatCannotPassIsAskedOnce(t *testing.T) {
	for name, line := range map[string]any{
		"a mistake":          answer(400, `{"error":{"code":"BAD_REQUEST","message":"no"}}`),
		"a distant deadline": answer(429, busy, "Retry-After", "3600"),
		"a redirect":         answer(302, "", "Location", "https://else.example"),
	} {
		c, s := scripted(t, line)
		if _, err := c.Run(t.Context(), "r"); err == nil || len(s.asked) != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, len(s.asked))
		}
	}
}

// What might be done twice is asked again only where it is known that nothing was done.
func TestT2OnlyWhatIsSafeIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range []any{cut, answer(502, ""), answer(500, "{}")} {
			c, s := scripted(t, failure)
			if err := c.do(t.Context(), request{method: "POST", path: []string{"x"}, once: true}, nil); err == nil || len(s.asked) != 1 {
				t.Errorf("%v: %v, asked %d times", failure, err, len(s.asked))
			}
		}
		c, s := scripted(t, refused, answer(429, busy), answer(200, "{}"))
		if err := c.do(t.Context(), request{method: "POST", path: []string{"x"}, once: true}, nil); err != nil || len(s.asked) != 3 {
			t.Error(err, len(s.asked))
		}
	})
}

// An extension whose answer was lost is asked for again, as the same one.
func TestX4AnExtensionIsAskedForAgainUnderItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, answer(500, busy), cut, answer(202, `{"run":"r","status":"completed"}`))
		got, err := c.Extend(t.Context(), "r", "k1", start.Extension{Upload: "uploads/a/b.csv"})
		if err != nil || got.Run != "r" {
			t.Fatal(got, err)
		}
		for _, asked := range s.keys {
			if asked != "POST /v1/runs/r/extend k1" {
				t.Error(asked)
			}
		}
		if len(s.keys) != 3 {
			t.Errorf("asked %d times", len(s.keys))
		}
	})
}
