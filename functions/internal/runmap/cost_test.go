package runmap

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/toolexec"
	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/cost"
	"sluice/internal/invoke"
	"sluice/internal/memory"
)

// What runs cost on AWS is worked out here on both functions with all that is between them, in virtual time: stores,
// invocations and answers take as long as they do there. What a processor does takes no time.
const (
	storeTakes  = 5 * time.Millisecond
	invokeTakes = 15 * time.Millisecond
	answerTakes = 100 * time.Millisecond
	invocation  = 15 * time.Minute
)

// remote is a table at the other end of a network.
type remote struct{ table.Table }

func (r remote) Get(ctx context.Context, key table.Key) (table.Item, error) {
	time.Sleep(storeTakes)
	return r.Table.Get(ctx, key)
}

func (r remote) Put(ctx context.Context, item table.Item, cond table.If) error {
	time.Sleep(storeTakes)
	return r.Table.Put(ctx, item, cond)
}

func (r remote) PutMany(ctx context.Context, items []table.Item) error {
	time.Sleep(storeTakes)
	return r.Table.PutMany(ctx, items)
}

// answering is a provider that answers everything.
type answering struct{}

func (answering) Send(_ context.Context, req *gateway.Request) (*gateway.Response, error) {
	if req.Leaves != nil {
		req.Leaves()
	}
	time.Sleep(answerTakes)
	return &gateway.Response{Status: 200, Header: http.Header{}, Body: []byte(`{"x": "an answer of some length"}`)}, nil
}

// invoker is Lambda for toolexec: JSON in, JSON out.
type invoker struct {
	*toolexec.Handler
	t *testing.T
}

func (i invoker) Invoke(ctx context.Context, payload []byte) (invoke.Result, error) {
	time.Sleep(invokeTakes)
	res, err := i.Handle(ctx, payload)
	if err != nil {
		i.t.Error(err)
		return invoke.Result{}, err
	}
	out, err := json.Marshal(res)
	return invoke.Result{Payload: out}, err
}

type catalogue struct{ *mapspec.Catalogue }

func (c catalogue) Of(context.Context, string) (*mapspec.Catalogue, error) { return c.Catalogue, nil }

// billWorld is a world in which everything is billed.
func billWorld(t *testing.T) *world {
	shared := remote{memory.New()}
	meter, calls := table.Meter(shared), table.Meter(shared)
	w := newWorld(t, nil)
	w.Store.Table, w.Store.Meter, w.Usage = meter, meter, meter.Usage
	paced := pacer.New(calls, "toolexec")
	paced.Bulk = true
	exec := &toolexec.Handler{Pacer: paced, Sender: answering{}, Secrets: gatewaytest.Secrets{}, Blobs: w.Store.Blobs,
		Log: slog.New(slog.DiscardHandler), Usage: calls.Usage}
	w.Gateway = func(j *run.Job) call.Gateway {
		if exec.Catalogues == nil {
			exec.Catalogues = catalogue{j.Tools}
		}
		return invoke.New(invoker{exec, t}, j.Run.ID, j.Tools, w.Store.Blobs)
	}
	return w
}

// machines do what the state machines do, to the end of the run.
func (w *world) machines(id string) {
	var plan PlanResult
	w.must(fmt.Sprintf(`{"op":"plan","run":%q}`, id), &plan)
	var shards sync.WaitGroup
	for n := range plan.Shards {
		shards.Go(func() {
			for slices := 0; ; slices++ {
				var s SliceResult
				w.invoke(fmt.Sprintf(`{"op":"slice","run":%q,"shard":%d,"slices":%d}`, id, n, slices), &s)
				switch s.Outcome {
				case "more":
				case "parked":
					w.await(s.WakeAt)
				default:
					return
				}
			}
		})
	}
	shards.Wait()
	w.invoke(fmt.Sprintf(`{"op":"finish","run":%q}`, id), &FinishResult{})
}

// invoke is must with the time that an invocation has.
func (w *world) invoke(raw string, into any) {
	ctx, cancel := context.WithTimeout(w.t.Context(), invocation)
	defer cancel()
	if err := w.ask(ctx, raw, into); err != nil {
		w.t.Error(err)
	}
}

func (w *world) await(moment string) {
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		w.t.Error(err)
	}
	time.Sleep(time.Until(at))
}

const threeCalls = `
version: 1
columns:
  - {name: one, call: a.get, with: {x: "${row.x + '1'}"}, result: "${result.x}"}
  - {name: two, call: a.get, with: {x: "${row.x + '2'}"}, result: "${result.x}"}
  - {name: three, call: a.get, with: {x: "${row.x + '3'}"}, result: "${result.x}"}
`

// bill works a run of rows with three calls each under a limit, and returns what it costs.
func bill(t *testing.T, limit string, rows int) cost.Bill {
	var b cost.Bill
	synctest.Test(t, func(t *testing.T) {
		w := billWorld(t)
		var in strings.Builder
		in.WriteString("x\n")
		for i := range rows {
			fmt.Fprintf(&in, "row-%d\n", i)
		}
		w.registerTools("r", threeCalls, fmt.Sprintf(`
version: 1
providers: {a: {url: "https://a.example", limits: [%s]}}
tools: {a.get: {path: "/{x}", timeout: 10s}}
`, limit), in.String())
		w.machines("r")
		rec := w.record("r")
		if rec.Counts.Completed != int64(rows) || rec.Stats.Dispatched != int64(3*rows) {
			t.Fatalf("%+v, %d calls", rec.Counts, rec.Stats.Dispatched)
		}
		b = cost.Of(cost.Used(rec))
	})
	return b
}

// A million rows with three calls each, by the limit of their provider. What a run costs whatever its size is not in it: it is
// the difference of two runs.
//
// The bounds, of three calls at a rate of r: for short windows 3/r seconds of runmap (512 MB: 0.5 × 0.0000133334 dollars), each
// with a batch of 64 calls or fewer (0.12 s of toolexec, its request, permits and journal: 0.0000025). For longer ones 3/r parks, each of
// three transitions and a request (0.000075), its slice (2 s: 0.000014) and its batches; where a window is more than a few batches,
// also the seconds that these take. And 0.3 for what is stored, where checkpoints speak of up to a thousand rows that wait, 0.6.
func TestCostByLimit(t *testing.T) {
	for _, tc := range []struct {
		limit string
		rows  int // of the smaller run
		most  float64
	}{
		{"{rate: 5, per: 1s}", 100, 0.3 + 3./5*9.2},
		{"{rate: 10, per: 1s}", 200, 0.3 + 3./10*9.2},
		{"{rate: 20, per: 1s}", 300, 0.3 + 3./20*9.2},
		{"{rate: 50, per: 1s}", 500, 0.3 + 3./50*9.2},
		{"{rate: 100, per: 1s}", 1000, 0.3 + 3./100*(9.2+2.5)},
		{"{rate: 1000, per: 1s}", 3000, 0.3 + 3./1000*(9.2+15*2.5)},
		{"{rate: 30, per: 1m}", 100, 0.6 + 3./30*(75+14)},
		{"{rate: 60, per: 1m}", 100, 0.6 + 3./60*(75+14)},
		{"{rate: 150, per: 1m}", 200, 0.6 + 3./150*(75+14+3*2.5)},
		{"{rate: 600, per: 1m}", 800, 0.3 + 3./600*(75+14+10*2.5)},
		{"{rate: 3000, per: 1m}", 2000, 0.3 + 3./3000*(75+14+50*2.5)},
		{"{rate: 1000, per: 1h}", 1000, 0.3 + 3./1000*(75+14+16*2.5)},
	} {
		small, large := bill(t, tc.limit, tc.rows), bill(t, tc.limit, 2*tc.rows)
		got := (large.Total - small.Total) / float64(tc.rows) * 1e6
		t.Logf("%-24s %5.2f dollars for a million rows", tc.limit, got)
		if got > tc.most {
			t.Errorf("%s: a million rows cost %.2f dollars, want at most %.2f", tc.limit, got, tc.most)
			for i, l := range large.Lines {
				t.Logf("  %-24s %8.4f", l.Name, (l.Dollars-small.Lines[i].Dollars)/float64(tc.rows)*1e6)
			}
		}
	}
}
