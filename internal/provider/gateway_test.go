package provider_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

func TestExecutorOverSockets(t *testing.T) {
	client := provider.New(provider.Options{DialTimeout: gatewaytest.SocketDialTimeout})
	t.Cleanup(client.CloseIdleConnections)
	gatewaytest.RunSockets(t, func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway {
		return gateway.New(gateway.Config{Catalogue: c, Sender: s, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test")})
	}, client)
}

// M6, M8: forty large answers at once, of known and of unknown length, through the memory for one and a half.
func TestM6ManyLargeAnswersTakeTurns(t *testing.T) {
	text := strings.Repeat("x", 500<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := mapspec.ParseTools("tools.yaml", []byte(`version: 1
providers: {it: {url: "`+server.URL+`", allowPrivate: true, limits: [{rate: 100000, per: 1s}]}}
tools:
  it.known: {path: /known, maxBody: 600KB, result: "${size(body)}"}
  it.unknown: {path: /unknown, maxBody: 600KB, result: "${size(body)}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	client := provider.New(provider.Options{})
	t.Cleanup(client.CloseIdleConnections)
	e := gateway.New(gateway.Config{Catalogue: c, Sender: client, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test"),
		Bodies: gateway.NewBodies(1 << 20)})
	batch := make([]call.Attempt, 40)
	for i := range batch {
		batch[i].Tool = []string{"it.known", "it.unknown"}[i%2]
	}
	var good atomic.Int32
	err = e.Execute(t.Context(), batch, func(_ int, a call.Answer) {
		if a.Outcome == call.Result && string(a.Value) == "512000" {
			good.Add(1)
		} else if a.Outcome != call.Refused { // permits that went void on a busy machine
			t.Errorf("%+v %v", a, a.Error)
		}
	})
	use := e.BodyUse()
	if err != nil || good.Load() < 10 || use.Turns != int64(good.Load()) || use.Bytes != use.Turns*512_000 || use.Peak > 1<<20 || use.Waits == 0 {
		t.Errorf("%v, %d answers, %+v", err, good.Load(), use)
	}
}

// H12: a tool's timeout is that of the exchange. The second call waits a quarter of a second for its permit.
func TestH12WaitingForAPermitIsNoPartOfTheTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(80 * time.Millisecond) }))
	t.Cleanup(server.Close)
	c, err := mapspec.ParseTools("tools.yaml", []byte(`{version: 1, providers: {it: {url: "`+server.URL+`", allowPrivate: true, limits: [{rate: 4, per: 1s}]}},
tools: {it.get: {path: /x, timeout: 200ms}}}`))
	if err != nil {
		t.Fatal(err)
	}
	client := provider.New(provider.Options{})
	t.Cleanup(client.CloseIdleConnections)
	e := gateway.New(gateway.Config{Catalogue: c, Sender: client, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test")})
	started := time.Now()
	err = e.Execute(t.Context(), []call.Attempt{{Tool: "it.get"}, {Tool: "it.get"}}, func(_ int, a call.Answer) {
		if a.Outcome != call.Result {
			t.Errorf("%+v %v", a, a.Error)
		}
	})
	if took := time.Since(started); err != nil || took < 300*time.Millisecond {
		t.Errorf("%v, %v", err, took)
	}
}
