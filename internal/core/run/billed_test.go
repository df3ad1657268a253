package run_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// Where every batch of calls is billed, and lasts as long as its slowest call.

// invoked is a gateway in another process: the answers of a batch come back together. It notes how many calls each batch
// had, and how many of them were dispatched.
type invoked struct {
	call.Gateway
	mu            sync.Mutex
	calls, passed []int
}

func (g *invoked) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	answers := make([]call.Answer, len(batch))
	err := g.Gateway.Execute(ctx, batch, func(i int, a call.Answer) { answers[i] = a })
	n := 0
	for _, a := range answers {
		if a.Dispatched {
			n++
		}
	}
	g.mu.Lock()
	g.calls, g.passed = append(g.calls, len(batch)), append(g.passed, n)
	g.mu.Unlock()
	for i, a := range answers {
		deliver(i, a)
	}
	return err
}

func sum(of []int) (n int) {
	for _, i := range of {
		n += i
	}
	return n
}

// billed is a world in which waiting is billed.
func billed(t *testing.T, tbl table.Table, provider string) (*paced, *invoked) {
	p, g := newPaced(t, tbl, provider), &invoked{}
	p.bulk, p.settings.Linger, p.settings.Keep = true, 25*time.Millisecond, 48*time.Hour
	p.wrap = func(inner call.Gateway) call.Gateway { g.Gateway = inner; return g }
	return p, g
}

// A limit of ten a second is used with a batch of ten a second, and next to nothing travels in vain.
func TestBilledBatchesAreAsLargeAsTheLimit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p, g := billed(t, tbl, "limits: [{rate: 10, per: 1s}]")
		begun := time.Now()
		p.process("one", p.plan("r", callA, rows(300)...))
		if took := time.Since(begun); took < 29*time.Second || took > 33*time.Second {
			t.Errorf("300 calls at 10/s took %v", took)
		}
		p.site.strict(10, time.Second)
		if len(g.calls) > 33 || sum(g.calls) > 320 || sum(g.passed) != 300 {
			t.Errorf("%d batches of %v calls, of which %v were dispatched; want about 30 of ten", len(g.calls), g.calls, g.passed)
		}
	})
}

// A limit that is more than a batch is used in full as well.
func TestBilledBatchesUseLargeLimitsInFull(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p, g := billed(t, tbl, "limits: [{rate: 100, per: 1s}]")
		begun := time.Now()
		p.process("one", p.plan("r", callA, rows(2000)...))
		if took := time.Since(begun); took > 20*time.Second { // the last of 20 windows begins after 19 of them and their slack
			t.Errorf("2,000 calls at 100/s took %v", took)
		}
		p.site.strict(100, time.Second)
		if len(g.calls) != 40 {
			t.Errorf("%d batches of %v calls, want 40 of 50", len(g.calls), g.calls)
		}
	})
}

// Calls that take long share what their batch costs: they wait for others for a part of what they take. Here they come
// four a second, and each takes eight.
func TestBilledBatchesOfSlowCallsAreShared(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p, g := billed(t, tbl, "limits: [{rate: 1000, per: 1s}]")
		p.tools = strings.Replace(p.tools, "tools:", "  b: {url: \"https://b.example\", limits: [{rate: 4, per: 1s}]}\ntools:\n  b.get: {method: GET, path: \"/{x}\"}", 1)
		p.site.answer = func(path string, _ int) *gateway.Response {
			if strings.HasPrefix(path, "/slow") {
				time.Sleep(8 * time.Second)
			}
			return nil
		}
		begun := time.Now()
		p.process("one", p.plan("r", `
version: 1
name: two
columns:
  - {name: quick, call: b.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: slow, call: a.get, with: {x: "${'slow' + cells.quick}"}, result: "${result.x}"}
`, rows(120)...))
		if took := time.Since(begun); took > 42*time.Second { // 120/4 s, the last call, and a quarter of it
			t.Errorf("it took %v", took)
		}
		if slow := len(g.calls) - 30; slow > 20 {
			t.Errorf("about %d batches for 120 slow calls; all had %v", slow, g.calls)
		}
	})
}

// A row that is alone waits for nobody.
func TestBilledCallsWithoutCompanyGoAtOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p, g := billed(t, tbl, "limits: [{rate: 1000, per: 1s}]")
		const three = `
version: 1
name: three
columns:
  - {name: one, call: a.get, with: {x: "${row.x + '1'}"}, result: "${result.x}"}
  - {name: two, call: a.get, with: {x: "${cells.one + '2'}"}, result: "${result.x}"}
  - {name: three, call: a.get, with: {x: "${cells.two + '3'}"}, result: "${result.x}"}
`
		begun := time.Now()
		p.process("one", p.plan("r", three, rows(1)...))
		if took := time.Since(begun); took > 3*(p.site.latency+250*time.Millisecond) { // and a commit each
			t.Errorf("it took %v", took)
		}
		if len(g.calls) != 3 {
			t.Errorf("%v batches", g.calls)
		}
	})
}

// A call is claimed when its turn has come: rows that wait over several windows write nothing.
func TestH10AClaimIsTakenWithTheTurn(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		watched := tabletest.NewFaulty(tbl)
		p, _ := billed(t, watched, "limits: [{rate: 20, per: 1m}]")
		p.tools = strings.Replace(p.tools, "path: \"/{x}\"}", "path: \"/{x}\", cache: 30d}", 1)
		parks := p.process("one", p.plan("r", callA, rows(60)...))
		if n := len(p.site.hits()); n != 60 || parks != 2 {
			t.Errorf("%d requests for 60 questions, %d parks", n, parks)
		}
		writes := 0
		for _, e := range watched.Trace() {
			if e.Op.IsWrite() && isReceipt(e.Keys[0]) && e.Err == nil {
				writes++
			}
		}
		if writes > 2*60+2*parks {
			t.Errorf("%d receipts were written or deleted, want a claim and a result for each question, and one of each that tried at the end of a window", writes)
		}
	})
}
