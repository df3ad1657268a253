package page

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// site is a server on this machine that can be taken down and put up again under the same address.
type site struct {
	t       *testing.T
	handler http.Handler
	address string
	URL     string // of the document

	mu     sync.Mutex
	server *http.Server
	seen   []*http.Request
}

// newSite serves a handler under a path, such as that of a stage; `/` is none.
func newSite(t *testing.T, path string, h http.Handler) *site {
	t.Helper()
	s := &site{t: t, address: "127.0.0.1:0"}
	if path != "/" {
		h = http.StripPrefix(path, h)
	}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Clone(context.Background()))
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
	s.up()
	t.Cleanup(s.down)
	s.URL = "http://" + s.address + path
	if path != "/" {
		s.URL += "/"
	}
	return s
}

func (s *site) up() {
	s.t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().String()
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.t.Error(err)
		}
	}()
}

func (s *site) down() {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	_ = server.Close()
}

// requests are those that came in so far.
func (s *site) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.seen...)
}
