package gateway_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/memory"
)

func open(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway {
	t.Helper()
	return gateway.New(gateway.Config{
		Catalogue: c, Sender: s, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test"),
	})
}

func TestExecutorKeepsTheContract(t *testing.T) { gatewaytest.Run(t, open) }

// wire carries attempts and answers as JSON, as a gateway in another process gets and gives them.
type wire struct{ call.Gateway }

func (w wire) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	var there []call.Attempt
	if err := carry(batch, &there); err != nil {
		return err
	}
	return w.Gateway.Execute(ctx, there, func(i int, a call.Answer) {
		var back call.Answer
		if err := carry(a, &back); err != nil {
			panic(err) // of a test
		}
		deliver(i, back)
	})
}

func carry(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

func TestContractHoldsOverJSON(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway { return wire{open(t, c, s)} })
}

// instant answers at once, as a tool in the process does.
type instant struct{ res *gateway.Response }

func (s instant) Send(context.Context, *gateway.Request) (*gateway.Response, error) {
	return s.res, nil
}

const fastTools = `
version: 1
providers:
  acme: {url: "https://acme.example", limits: [{rate: 1000000, per: 1s}]}
tools:
  acme.get: {path: "/x/{id}", input: {id: string}, result: "${body.name}"}
`

// BenchmarkExecute is the cost of an attempt apart from the provider's.
func BenchmarkExecute(b *testing.B) {
	c, err := mapspec.ParseTools("tools.yaml", []byte(fastTools))
	if err != nil {
		b.Fatal(err)
	}
	sender := instant{&gateway.Response{Status: 200, Body: []byte(`{"name":"x"}`),
		Header: map[string][]string{"Content-Type": {"application/json"}}}}
	e := gateway.New(gateway.Config{Catalogue: c, Sender: sender, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "b")})
	batch := make([]call.Attempt, 64)
	for i := range batch {
		batch[i] = call.Attempt{Tool: "acme.get", Input: json.RawMessage(`{"id":"abc"}`)}
	}
	var done, other atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for done.Load() < int64(b.N) {
				err := e.Execute(context.Background(), batch, func(_ int, a call.Answer) {
					if a.Outcome == call.Result {
						done.Add(1)
					} else {
						other.Add(1)
					}
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds(), "attempts/s")
	b.ReportMetric(float64(other.Load()), "refused")
}
