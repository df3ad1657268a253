package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/local"
	"sluice/internal/start"
)

const patienceOfTests = 30 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// provider answers GET /up/{x}. Inputs that begin with "wait" are answered when the gate opens, "hold" asks to wait for
// ten minutes.
type provider struct {
	*httptest.Server
	gate  chan struct{}
	mu    sync.Mutex
	asked map[string]int
}

func newProvider(t *testing.T) *provider {
	p := &provider{gate: make(chan struct{}), asked: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := strings.TrimPrefix(r.URL.Path, "/up/")
		p.mu.Lock()
		p.asked[x]++
		p.mu.Unlock()
		switch {
		case strings.HasPrefix(x, "wait"):
			select {
			case <-p.gate:
			case <-r.Context().Done():
				return
			}
		case x == "bad":
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		case x == "hold":
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(strings.ToUpper(x) + r.Header.Get("X-Key"))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) calls(x string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[x]
}

// tools is the tool file; a hold of one provider is none of another's.
func (p *provider) tools() string { return p.toolsOf("acme") }

func (p *provider) toolsOf(name string) string {
	return "version: 1\nproviders: {" + name + ": {url: \"" + p.URL + "\", allowPrivate: true, auth: {header: X-Key, secret: \"env:ACME\"}, limits: [{rate: 1000, per: 1s}]}}\n" +
		"tools: {" + name + ".up: {path: \"/up/{x}\", input: {x: string}}}\n"
}

const mapText = "version: 1\nname: upper\ncolumns:\n  - {name: up, call: acme.up, with: {x: \"${row.x}\"}}\n"

// secrets are those of the server's environment.
type secrets map[string]string

func (s secrets) Resolve(_ context.Context, ref string) (string, error) {
	if v, ok := s[ref]; ok {
		return v, nil
	}
	return "", fmt.Errorf("%s is not set", ref)
}

// server is one at work.
type server struct {
	t       *testing.T
	url     string
	stop    chan struct{}
	kill    context.CancelFunc
	ended   chan error
	state   *local.State
	stopped bool
}

func serving(t *testing.T, dir, key string) *server {
	t.Helper()
	st, err := local.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	s := New(Options{State: st, Secrets: secrets{"env:ACME": "!"}, UserAgent: "test", Key: key, Log: quiet, Requests: quiet, URL: "http://" + l.Addr().String(),
		Page: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) })})
	ctx, cancel := context.WithCancel(t.Context())
	w := &server{t: t, url: "http://" + l.Addr().String(), stop: make(chan struct{}), kill: cancel, ended: make(chan error, 1), state: st}
	go func() { w.ended <- s.Serve(ctx, l, w.stop) }()
	t.Cleanup(func() {
		cancel()
		w.end()
	})
	return w
}

// end waits for the server's end, and closes its state.
func (w *server) end() {
	if w.stopped {
		return
	}
	w.stopped = true
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Error(err)
		}
	case <-time.After(patienceOfTests):
		w.t.Fatal("the server does not end")
	}
	if err := w.state.Close(); err != nil {
		w.t.Error(err)
	}
}

// park stops the server as Ctrl-C does.
func (w *server) park() {
	close(w.stop)
	w.end()
}

func (w *server) client() *client.Client { return w.keyed("") }

func (w *server) keyed(key string) *client.Client {
	w.t.Helper()
	c, err := client.New(w.url, key, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run starts a run of inputs x.
func (w *server) run(id, tools string, inputs ...string) {
	w.t.Helper()
	if _, err := w.client().Start(w.t.Context(), start.Request{Run: id, Map: strings.ReplaceAll(mapText, "acme", providerOf(tools)), Tools: tools, Rows: rowsOf(inputs...)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *server) view(id string) api.View {
	w.t.Helper()
	v, err := w.client().Run(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// until waits for a status.
func (w *server) until(id, status string) api.View {
	w.t.Helper()
	var v api.View
	eventually(w.t, "run "+id+" is "+status, func() bool {
		v = w.view(id)
		return string(v.Status) == status
	})
	return v
}

func rowsOf(inputs ...string) (rows []json.RawMessage) {
	for _, x := range inputs {
		rows = append(rows, json.RawMessage(`{"x":"`+x+`"}`))
	}
	return rows
}

// providerOf is the provider of a tool file of these tests.
func providerOf(tools string) string {
	_, after, _ := strings.Cut(tools, "providers: {")
	name, _, _ := strings.Cut(after, ":")
	return name
}
