package provider

import (
	"compress/gzip"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/gateway"
)

// answers serves bodies of ?size=N bytes, with their length or (?chunked) without.
func answers(t *testing.T, state func(net.Conn, http.ConnState)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("size"))
		w.Header().Set("Content-Type", "text/plain")
		if !r.Form.Has("chunked") {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		w.Write(make([]byte, n))
	}))
	s.Config.ConnState = state
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// closings tells of each connection that is closed.
func closings() (<-chan struct{}, func(net.Conn, http.ConnState)) {
	closed := make(chan struct{}, 1)
	return closed, func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
}

func sized(base string, n int, more string, b *gateway.Bodies) *gateway.Request {
	req := request(base)
	req.URL += "&size=" + strconv.Itoa(n) + more
	if b != nil {
		req.Turn = b.Turn()
	}
	return req
}

// M6: a body waits while others hold the memory, and its tool's time limit stands still meanwhile.
func TestM6BodiesTakeTurns(t *testing.T) {
	s, c, b := answers(t, nil), client(t, Options{}), gateway.NewBodies(1<<20)
	held := b.Turn()
	if err := held.Take(t.Context(), b.Turn().Most(), nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, more := range []string{"", "&chunked"} {
		wg.Go(func() {
			req := sized(s.URL, 400<<10, more, b)
			req.Timeout = 200 * time.Millisecond
			res, err := c.Send(t.Context(), req)
			if err != nil || len(res.Body) != 400<<10 {
				t.Errorf("%q: %v", more, err)
			}
			req.Turn.End()
		})
	}
	time.Sleep(400 * time.Millisecond) // longer than the limit
	held.End()
	wg.Wait()
	if use := b.Use(); use.Waits < 2 || use.Bytes != 800<<10 || use.Peak > 1<<20 || use.Refusals != 0 {
		t.Errorf("%+v", use)
	}
}

// M6, R10: who waits for room can be cancelled; the body that nobody will read is closed with its connection.
func TestM6CancelWhileWaitingForRoom(t *testing.T) {
	closed, state := closings()
	s := answers(t, state)
	b := gateway.NewBodies(1 << 20)
	_ = b.Turn().Take(t.Context(), b.Turn().Most(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := client(t, Options{}).Send(ctx, sized(s.URL, 700<<10, "", b))
	e := wantError(t, err, "CANCELLED", true)
	if e.Response == nil || e.Response.Status != 200 {
		t.Errorf("the head of the answer is lost: %+v", e.Response)
	}
	<-closed
}

// M6: a body that is larger than allowed is not read, and is closed.
func TestM6OversizedBodiesAreRefusedAndClosed(t *testing.T) {
	b := gateway.NewBodies(1 << 20) // 768 KB for one body
	for _, tt := range []struct {
		name, more string
		size       int
		max        int64
		says       string
	}{
		{"with its length", "", 700 << 10, 100 << 10, "maxBody"},
		{"without its length", "&chunked", 700 << 10, 100 << 10, "maxBody"},
		{"just over a first part", "&chunked", 64<<10 + 1, 64 << 10, "maxBody"},
		{"larger than the process allows, with its length", "", 900 << 10, 2 << 20, "SLUICE_BODY_MEMORY"},
		{"larger than the process allows", "&chunked", 900 << 10, 2 << 20, "SLUICE_BODY_MEMORY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			closed, state := closings()
			s := answers(t, state)
			req := sized(s.URL, tt.size, tt.more, b)
			req.MaxBody = tt.max
			_, err := client(t, Options{}).Send(t.Context(), req)
			req.Turn.End()
			if e := wantError(t, err, "BODY_TOO_LARGE", true); !strings.Contains(e.Message, tt.says) {
				t.Errorf("the message does not say %q: %s", tt.says, e.Message)
			}
			<-closed
		})
	}
	if use := b.Use(); use.Refusals != 5 || use.Peak > 1<<20 {
		t.Errorf("%+v", use)
	}
}

// M6: a small answer that unpacks to gigabytes is stopped at the limit.
func TestM6GzipBomb(t *testing.T) {
	base := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 10_000 {
			if _, err := z.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	b := gateway.NewBodies(0)
	req := request(base)
	req.Turn = b.Turn()
	_, err := client(t, Options{}).Send(t.Context(), req)
	wantError(t, err, "BODY_TOO_LARGE", true)
	if use := b.Use(); use.Peak > 2<<20 || use.Refusals != 1 {
		t.Errorf("%+v", use)
	}
}
