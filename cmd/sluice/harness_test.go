package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// bench is a folder with the files of a run, and a provider that they call.
type bench struct {
	t        *testing.T
	dir      string
	provider *provider
	signals  chan os.Signal
	secrets  map[string]string
	stdin    string
	getenv   func(string) string // nil: nothing is set
}

// provider is a small HTTP API: GET /up/{x} answers {"up": X}. Some inputs make trouble: "bad…" is refused for
// good, "none…" is not known, "hold" says to come back in an hour. Inputs that begin with "wait" are answered when
// the gate opens.
type provider struct {
	*httptest.Server
	gate   chan struct{}
	opened sync.Once

	mu     sync.Mutex
	asked  map[string]int
	times  []time.Time
	mended map[string]bool
}

func newProvider(t *testing.T) *provider {
	p := &provider{asked: map[string]int{}, gate: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() { p.open(); p.Close() })
	return p
}

func (p *provider) open() { p.opened.Do(func() { close(p.gate) }) }

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	x := strings.TrimPrefix(r.URL.Path, "/up/")
	p.mu.Lock()
	p.asked[x]++
	p.times = append(p.times, time.Now())
	mended := p.mended[x]
	p.mu.Unlock()
	if strings.HasPrefix(x, "wait") {
		select {
		case <-p.gate:
		case <-r.Context().Done():
			return
		}
	}
	status, body := http.StatusOK, map[string]any{"up": strings.ToUpper(x), "key": r.Header.Get("X-Key"), "n": r.URL.Query().Get("n")}
	switch {
	case mended:
	case strings.HasPrefix(x, "bad"):
		status, body = http.StatusUnprocessableEntity, map[string]any{"error": "no \x1b[31mred\u009b words"}
	case strings.HasPrefix(x, "none"):
		status = http.StatusNotFound
	case x == "hold":
		w.Header().Set("Retry-After", "3600")
		status = http.StatusTooManyRequests
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// mend ends the trouble with an input.
func (p *provider) mend(x string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mended == nil {
		p.mended = map[string]bool{}
	}
	p.mended[x] = true
}

// calls is how often the input was asked for; the empty input counts all calls.
func (p *provider) calls(x string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x != "" {
		return p.asked[x]
	}
	return len(p.times)
}

const toolsText = `version: 1
providers:
  acme:
    url: URL
    allowPrivate: true
    auth: {header: X-Key, secret: "env:ACME_KEY"}
    limits: [{rate: 1000, per: 1s}]
    noProgress: 2h
  other:
    url: URL
    allowPrivate: true
    auth: {header: X-Key, secret: "env:OTHER_KEY"}
tools:
  acme.up:
    path: /up/{x}
    query: {n: "${input.n == null ? 0 : input.n}"}
    input: {x: string, "n?": integer}
    cost: 0.01
    missing: ${status == 404}
    result: ${body}
  other.up: {path: "/up/{x}", input: {x: string}}
`

const mapText = `version: 1
name: upper
vars: {tail: "!"}
columns:
  - name: up
    call: acme.up
    with: {x: "${row.x}"}
    result: ${result.up + vars.tail}
`

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir(), provider: newProvider(t), signals: make(chan os.Signal, 1),
		secrets: map[string]string{"ACME_KEY": "k1", "OTHER_KEY": "k2"}}
	b.write("tools.yaml", strings.ReplaceAll(toolsText, "URL", b.provider.URL))
	b.write("map.yaml", mapText)
	b.write("in.csv", "x\nada\nbob\n")
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// result is what a command came to.
type result struct {
	code     int
	out, err string
}

// args puts the state folder behind the command, and the bench's folder into names that begin with @.
func (b *bench) args(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = strings.ReplaceAll(arg, "@", b.dir+"/")
	}
	if slices.Contains(args, "--state") || slices.Contains(args, "--api") || b.getenv != nil {
		return out
	}
	switch args[0] {
	case "run", "resume", "cancel", "pause", "retry", "runs", "rows", "export", "tools", "answer", "serve":
		out = append(out, "--state", b.path("state"))
	}
	return out
}

// sluice carries a command out in this process.
func (b *bench) sluice(args ...string) result {
	b.t.Helper()
	var out, err syncBuffer
	return b.into(&out, &err, args...)
}

func (b *bench) into(out, err *syncBuffer, args ...string) result {
	a := &app{stdin: strings.NewReader(b.stdin), stdout: out, stderr: err, signals: b.signals, secrets: b, getenv: b.getenv}
	if a.getenv == nil {
		a.getenv = func(string) string { return "" }
	}
	code := a.run(b.args(args))
	return result{code, b.plain(out.String()), b.plain(err.String())}
}

// plain takes out of a text what differs from test to test.
func (b *bench) plain(s string) string {
	return strings.ReplaceAll(s, b.dir+"/", "@")
}

// Resolve implements gateway.Secrets.
func (b *bench) Resolve(_ context.Context, ref string) (string, error) {
	name := strings.TrimPrefix(ref, "env:")
	if v := b.secrets[name]; v != "" {
		return v, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

// syncBuffer is a buffer that can be looked at while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// patience bounds what a test waits for something that happens in milliseconds.
const patience = 30 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// want checks the exit code, and parts of what was printed.
func (r result) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, part := range parts {
		if !strings.Contains(r.out+r.err, part) {
			t.Errorf("nothing says %q", part)
		}
	}
	if t.Failed() {
		t.Fatalf("stdout:\n%s\nstderr:\n%s", r.out, r.err)
	}
}

func (r result) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("standard output is not one JSON object: %v\n%s", err, r.out)
	}
	return v
}
