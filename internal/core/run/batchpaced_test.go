package run_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/gateway"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// office is a provider over HTTP that answers lists of questions.
type office struct {
	*site
	mu    sync.Mutex
	sizes []int
}

func (o *office) Send(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	var xs []string
	if err := json.Unmarshal(req.Body, &xs); err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	o.sizes = append(o.sizes, len(xs))
	o.mu.Unlock()
	if res, err := o.site.Send(ctx, req); err != nil || res.Status != 200 {
		return res, err
	}
	if len(xs) > 30 {
		return &gateway.Response{Status: http.StatusRequestEntityTooLarge}, nil
	}
	var items []any
	for _, x := range xs {
		switch {
		case x == "skipped": // the provider leaves out what it does not know: the answers cannot be told apart
		case strings.HasPrefix(x, "none"):
			items = append(items, nil)
		default:
			items = append(items, map[string]any{"x": x})
		}
	}
	b, err := json.Marshal(map[string]any{"items": items})
	return &gateway.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: b}, err
}

// The whole way with the real gateway and pacer: the limits count requests, a batch that is too large is halved, a hold
// holds all of it, and an answer with a wrong number of parts is an error of its calls alone.
func TestBatchThroughTheRealGateway(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1, per: 1s}]")
		p.tools += "  a.many: {method: POST, idempotent: true, path: /many, cost: 0.5, input: {x: string}, missing: \"${body == null}\",\n" +
			"    batch: {size: 50, body: \"${inputs.map(i, i.x)}\", each: \"${body.items}\"}}\n"
		o := &office{site: p.site}
		p.site.answer = func(path string, nth int) *gateway.Response {
			if nth == 2 {
				return refusal("Retry-After", "60")
			}
			return nil
		}
		lines := append(rows(100), "none1", "none2")
		job := p.plan("r", strings.ReplaceAll(bulkMap, "TOOL", "many"), lines...)
		exec := gateway.New(gateway.Config{Catalogue: job.Tools, Sender: o, Secrets: noKeys{}, Pacer: pacer.New(p.tbl, "one")})
		defer exec.Close(context.Background())
		parks := 0
		for {
			res, err := job.Slice(t.Context(), run.Ports{Store: p.st, Gateway: exec, Owner: "one" + itoa(parks)}, 0, p.settings)
			if err != nil {
				t.Fatal(err)
			}
			if res.Outcome == run.Done {
				break
			}
			parks++
			time.Sleep(time.Until(res.WakeAt))
		}
		want := strings.ReplaceAll(strings.ReplaceAll(echoed(lines), "none1,none1,none1!", "none1,,-"), "none2,none2,none2!", "none2,,-")
		if got := p.export(p.reload(job)); got != want {
			t.Errorf("got %s", got)
		}
		p.site.strict(1, time.Second)
		large := 0
		for _, n := range o.sizes {
			if n > 30 {
				large++
			}
		}
		if parks != 1 || len(o.sizes) > 9 || large != 2 { // a slice after the park does not know it yet
			t.Errorf("%d parks, the requests carried %v calls", parks, o.sizes)
		}
		if s := p.checkpoint(job).Stats; s.Dispatched != int64(len(o.sizes)) || s.Refused429 != 1 || s.CostMicros != 500_000*int64(len(o.sizes)-3) {
			t.Errorf("%+v for requests of %v calls", s, o.sizes) // two were too large, one was refused
		}
	})
}

// A provider that leaves out what it does not know gives no row another's answer.
func TestBatchOfTheRealGatewayIsNeverMisassigned(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 100, per: 1s}]")
		p.tools += "  a.many: {method: POST, idempotent: true, path: /many, batch: {size: 50, body: \"${inputs.map(i, i.x)}\", each: \"${body.items}\"}}\n"
		o := &office{site: p.site}
		job := p.plan("r", strings.ReplaceAll(bulkMap, "TOOL", "many"), "x", "a", "skipped", "b")
		exec := gateway.New(gateway.Config{Catalogue: job.Tools, Sender: o, Secrets: noKeys{}, Pacer: pacer.New(p.tbl, "one")})
		defer exec.Close(context.Background())
		if _, err := job.Slice(t.Context(), run.Ports{Store: p.st, Gateway: exec, Owner: "one"}, 0, p.settings); err != nil {
			t.Fatal(err)
		}
		got := p.export(p.reload(job))
		if n := strings.Count(got, "one: BAD_RESULT: tool a.many: batch.each gave 2 entries for 3 calls"); n != 3 || len(o.sizes) != 1 {
			t.Errorf("%d requests, got %s", len(o.sizes), got)
		}
	})
}
