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
	"sluice/internal/memory"
)

// H12: a hold that arrives after the grant voids the permits of the calls that were about to leave. Fresh ones are
// acquired for them, and nothing is dispatched within the hold.
func TestH12PermitsThatWentVoidAreAcquiredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{latency: 10 * time.Millisecond}
		p.status = func(n int) (int, http.Header) {
			if n == 0 {
				return 429, http.Header{"Retry-After": {"0.2"}}
			}
			return 200, nil
		}
		e := executor(t, memory.New(), "a", "limits: [{rate: 20, per: 1s}]", p) // one each 51.5 ms: eight within a horizon
		batch := make([]call.Attempt, 6)
		for i := range batch {
			batch[i] = call.Attempt{Tool: "acme.get"}
		}
		outcomes := map[call.Outcome]int{}
		var mu sync.Mutex
		if err := e.Execute(t.Context(), batch, func(_ int, a call.Answer) {
			mu.Lock()
			outcomes[a.Outcome]++
			mu.Unlock()
		}); err != nil {
			t.Fatal(err)
		}
		if outcomes[call.Held] != 1 || outcomes[call.Result] != 5 || len(p.asked) != 6 {
			t.Errorf("%v of %d requests, want one held and five results, without going back to the runner", outcomes, len(p.asked))
		}
		for _, at := range p.asked[1:] {
			if d := at.Sub(p.asked[0]); d < 210*time.Millisecond {
				t.Errorf("dispatched %v after the refused one, within the hold", d)
			}
		}
	})
}

// asleep never answers, as the calls of a process that is gone.
type asleep struct{ asked chan struct{} }

func (s asleep) Send(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, &gateway.SendError{Code: "CANCELLED", Sent: true}
}

// What a process held of a provider's concurrency when it disappeared is free when its calls must have ended: after the
// tool's timeout and the lease. Until then others are refused, and charged nothing (T4).
func TestT4LeasesEndWithTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := memory.New()
		const limits = "limits: [{rate: 1000, per: 1s}], concurrency: 2"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := asleep{make(chan struct{}, 2)}
		a := executor(t, tbl, "a", limits, gone)
		go func() {
			_ = a.Execute(ctx, []call.Attempt{{Tool: "acme.get"}, {Tool: "acme.get"}}, func(int, call.Answer) {})
		}()
		<-gone.asked
		<-gone.asked
		p := &provider{latency: time.Millisecond}
		b := executor(t, tbl, "b", limits, p)
		start, refused := time.Now(), 0
		for done := false; !done; {
			err := b.Execute(t.Context(), []call.Attempt{{Tool: "acme.get"}}, func(_ int, a call.Answer) {
				switch {
				case a.Outcome == call.Result:
					done = true
				case a.Outcome != call.Refused || a.Dispatched || a.Charged || a.CostMicros != 0 || a.Error != nil:
					t.Errorf("a refusal that charges: %+v", a)
				}
				refused++
				time.Sleep(time.Until(a.NextFree))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 89*time.Second || took > 92*time.Second || refused < 100 {
			t.Errorf("the slots were free after %v, want 30 s of timeout and 60 s of lease; %d refusals", took, refused)
		}
	})
}

// H12: the queue before the exchange is no part of a tool's timeout, and none of the latency that is reported.
func TestH12TheQueueIsNotPartOfTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := mapspec.ParseTools("tools.yaml", []byte(`{version: 1, providers: {acme: {url: "https://acme.example", limits: [{rate: 4, per: 1s}]}},
tools: {acme.get: {path: /x, timeout: 100ms}}}`))
		if err != nil {
			t.Fatal(err)
		}
		sender := &bounded{latency: 60 * time.Millisecond}
		e := gateway.New(gateway.Config{Catalogue: c, Sender: sender, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "a")})
		err = e.Execute(t.Context(), []call.Attempt{{Tool: "acme.get"}, {Tool: "acme.get"}}, func(_ int, a call.Answer) {
			if a.Outcome != call.Result {
				t.Errorf("%+v %v", a, a.Error)
			}
		})
		if err != nil || len(sender.left) != 2 {
			t.Fatalf("%v, %d requests", err, len(sender.left))
		}
		for i, left := range sender.left {
			if left < 100*time.Millisecond {
				t.Errorf("request %d had %v left of its 100 ms when it was sent", i, left)
			}
		}
	})
}

// bounded takes a while, and notes what the context would have left it.
type bounded struct {
	latency time.Duration
	left    []time.Duration
}

func (b *bounded) Send(ctx context.Context, r *gateway.Request) (*gateway.Response, error) {
	left := r.Timeout
	if at, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(at))
	}
	b.left = append(b.left, left)
	time.Sleep(b.latency)
	return &gateway.Response{Status: 200}, nil
}
