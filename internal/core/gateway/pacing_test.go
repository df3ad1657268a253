package gateway_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

// provider takes a while for each answer and notes when it was asked and by how many at once.
type provider struct {
	latency time.Duration
	status  func(n int) (status int, header http.Header) // of the n-th request, from 0

	mu      sync.Mutex
	asked   []time.Time
	running int
	peak    int
}

func (p *provider) Send(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
	p.mu.Lock()
	n := len(p.asked)
	p.asked = append(p.asked, time.Now())
	p.running++
	p.peak = max(p.peak, p.running)
	p.mu.Unlock()
	time.Sleep(p.latency)
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	status, header := 200, http.Header(nil)
	if p.status != nil {
		status, header = p.status(n)
	}
	return &gateway.Response{Status: status, Header: header}, ctx.Err()
}

func executor(t *testing.T, tbl table.Table, owner, limits string, s gateway.Sender) *gateway.Executor {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte("version: 1\nproviders:\n  acme: {url: \"https://acme.example\", "+limits+
		"}\ntools:\n  acme.get: {path: /x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return gateway.New(gateway.Config{Catalogue: c, Sender: s, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(tbl, owner)})
}

// work sends n calls as a runner does: in batches, and nothing before the time that the answers name.
func work(t *testing.T, e *gateway.Executor, n int) {
	t.Helper()
	for n > 0 {
		batch := make([]call.Attempt, min(n, 64))
		for i := range batch {
			batch[i] = call.Attempt{Tool: "acme.get"}
		}
		var mu sync.Mutex
		var free time.Time
		err := e.Execute(t.Context(), batch, func(_ int, a call.Answer) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.Outcome == call.Refused:
				free = a.NextFree
			case a.Outcome == call.Held:
				free = a.Until
			default:
				n--
			}
		})
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Until(free))
	}
}

func TestH17ThreeThousandCallsOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, p := memory.New(), &provider{latency: 30 * time.Millisecond}
		start := time.Now()
		var wg sync.WaitGroup
		for _, owner := range []string{"a", "b"} {
			wg.Go(func() { work(t, executor(t, tbl, owner, "limits: [{rate: 50, per: 1s}]", p), 1500) })
		}
		wg.Wait()
		if took := time.Since(start); took < 59*time.Second || took > 63*time.Second {
			t.Errorf("3,000 calls at 50/s took %v, want 60 s within 5 %%", took)
		}
		for i := 50; i < len(p.asked); i++ {
			if d := p.asked[i].Sub(p.asked[i-50]); d < time.Second {
				t.Fatalf("51 calls within %v", d)
			}
		}
	})
}

// distant is a provider to which each process has to connect first, with as many connections as it has calls at once.
type distant struct {
	provider
	connect time.Duration
	ready   int // connections
	busy    int
}

func (d *distant) Send(ctx context.Context, r *gateway.Request) (*gateway.Response, error) {
	d.mu.Lock()
	d.busy++
	fresh := d.busy > d.ready
	d.ready = max(d.ready, d.busy)
	d.mu.Unlock()
	if fresh {
		time.Sleep(d.connect)
	}
	r.Leaves()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy--
	}()
	return d.provider.Send(ctx, r)
}

// In bulk, the first burst of a process leaves late by the time that connecting takes, and what follows it is ready to go.
func TestH17ABurstOverNewConnectionsIsKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &distant{provider: provider{latency: 50 * time.Millisecond}, connect: 200 * time.Millisecond}
		e := executor(t, memory.New(), "a", "limits: [{rate: 20, per: 1s}]", p)
		e.Pacer.Bulk = true
		start := time.Now()
		work(t, e, 60)
		for i := 20; i < len(p.asked); i++ {
			if d := p.asked[i].Sub(p.asked[i-20]); d < time.Second {
				t.Fatalf("21 calls within %v", d)
			}
		}
		if took := time.Since(start); took > 2600*time.Millisecond { // three bursts, and the connecting
			t.Errorf("60 calls took %v", took)
		}
	})
}

// Spaced out, the calls of a process's first moments leave late by the time that connecting takes, and those that follow
// are ready to go: without more, the two together would be more than a window takes.
func TestH17FirstCallsOverNewConnectionsDelayTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &distant{provider: provider{latency: 50 * time.Millisecond}, connect: 200 * time.Millisecond}
		e := executor(t, memory.New(), "a", "limits: [{rate: 20, per: 1s}]", p)
		start := time.Now()
		work(t, e, 100)
		for i := 20; i < len(p.asked); i++ {
			if d := p.asked[i].Sub(p.asked[i-20]); d < time.Second {
				t.Fatalf("21 calls within %v", d)
			}
		}
		if took := time.Since(start); took > 5600*time.Millisecond { // 99 calls one each 51.5 ms, the connecting, and as much once more
			t.Errorf("100 calls took %v", took)
		}
	})
}

func TestConcurrencyIsUsedWithoutGoingBackToTheRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{latency: 20 * time.Millisecond}
		e := executor(t, memory.New(), "a", "limits: [{rate: 100000, per: 1s}], concurrency: 10", p)
		start := time.Now()
		work(t, e, 64)
		if took := time.Since(start); p.peak != 10 || took > 150*time.Millisecond {
			t.Errorf("64 calls of 20 ms by 10 took %v with %d at once, want 7 rounds", took, p.peak)
		}
	})
}

func TestConcurrencyOverTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, p := memory.New(), &provider{latency: 20 * time.Millisecond}
		limits := "limits: [{rate: 100000, per: 1s}], concurrency: 6"
		start := time.Now()
		var wg sync.WaitGroup
		for _, owner := range []string{"a", "b"} {
			wg.Go(func() { work(t, executor(t, tbl, owner, limits, p), 300) })
		}
		wg.Wait()
		if p.peak > 6 {
			t.Errorf("%d calls at once, allowed are 6", p.peak)
		}
		if took := time.Since(start); took > 4*time.Second { // 2 s if no slot is ever idle
			t.Errorf("600 calls of 20 ms by 6 took %v", took)
		}
	})
}

func TestH16NobodyAsksWithinAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := memory.New()
		p := &provider{latency: 50 * time.Millisecond}
		p.status = func(n int) (int, http.Header) {
			if n == 20 {
				return 429, http.Header{"Retry-After": {"30"}}
			}
			return 200, nil
		}
		var wg sync.WaitGroup
		for _, owner := range []string{"a", "b"} {
			wg.Go(func() { work(t, executor(t, tbl, owner, "limits: [{rate: 20, per: 1s}]", p), 50) })
		}
		wg.Wait()
		said := p.asked[20].Add(50 * time.Millisecond)
		late := 0
		for _, at := range p.asked {
			if at.After(said.Add(time.Second)) && at.Before(said.Add(30*time.Second)) {
				t.Errorf("asked %v after the provider said 30 s", at.Sub(said))
			}
			if at.After(said) && at.Before(said.Add(30*time.Second)) {
				late++
			}
		}
		// The other process may use the permits that it holds already, until it reads the hold.
		if late > 8 {
			t.Errorf("%d calls within the hold", late)
		}
	})
}

func TestSlowStoreDelaysAndWastesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		tbl.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: 300 * time.Millisecond})
		p := &provider{latency: 20 * time.Millisecond}
		start := time.Now()
		work(t, executor(t, tbl, "a", "limits: [{rate: 50, per: 1s}]", p), 200)
		if took := time.Since(start); took > 10*time.Second { // 4 s with a fast store
			t.Errorf("200 calls at 50/s over a store that takes 300 ms: %v", took)
		}
		for i := 50; i < len(p.asked); i++ {
			if d := p.asked[i].Sub(p.asked[i-50]); d < time.Second {
				t.Fatalf("51 calls within %v", d)
			}
		}
	})
}

func TestH2CredentialsOfOneProviderAreSeparateScopes(t *testing.T) {
	a, b := gateway.ScopeName("acme", "key-1"), gateway.ScopeName("acme", "key-2")
	if a == b {
		t.Errorf("both are %s", a)
	}
	if want := "acme-16f16e39ea52"; a != want { // the beginning of the SHA-256 of "acme/key-1"
		t.Errorf("scope %s, want %s", a, want)
	}
}
