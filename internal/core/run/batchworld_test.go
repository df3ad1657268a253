package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// bulk is a gateway of tools that take many calls in a request. It keeps what it was sent, and which calls it executed:
// one that comes again under the same fence is answered from memory, as a provider does that knows fences.
type bulk struct {
	t       *testing.T
	started time.Time
	latency time.Duration
	answer  func(r bulkRequest, nth int) *call.Answer // of the request as a whole; nil: each of its calls is executed

	mu       sync.Mutex
	requests []bulkRequest
	seen     map[string]int // by content
	executed map[string]int // by input
	fences   map[string]bool
}

type bulkRequest struct {
	call.Attempt
	xs []string
	at time.Duration
}

func newBulk(t *testing.T) *bulk {
	return &bulk{t: t, started: time.Now(), latency: 10 * time.Millisecond, seen: map[string]int{}, executed: map[string]int{}, fences: map[string]bool{}}
}

func (b *bulk) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	var wg sync.WaitGroup
	for i, a := range batch {
		wg.Go(func() { deliver(i, b.one(a)) })
	}
	wg.Wait()
	return nil
}

func (b *bulk) one(a call.Attempt) call.Answer {
	r := bulkRequest{Attempt: a, at: time.Since(b.started)}
	inputs := a.Inputs
	if len(inputs) == 0 {
		inputs = []json.RawMessage{a.Input}
	}
	for _, in := range inputs {
		var with struct{ X string }
		if err := json.Unmarshal(in, &with); err != nil {
			b.t.Error(err)
		}
		r.xs = append(r.xs, with.X)
	}
	b.mu.Lock()
	content := strings.Join(r.xs, ",")
	nth := b.seen[content]
	b.seen[content]++
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	time.Sleep(b.latency)
	if b.answer != nil {
		if whole := b.answer(r, nth); whole != nil {
			return *whole
		}
	}
	return b.execute(r)
}

// execute does what a request asks, once for a fence.
func (b *bulk) execute(r bulkRequest) call.Answer {
	b.mu.Lock()
	known := b.fences[r.Fence]
	fenced := strings.HasSuffix(r.Tool, "fenced")
	b.fences[r.Fence] = true
	for _, x := range r.xs {
		if !(fenced && known) {
			b.executed[x]++
		}
	}
	b.mu.Unlock()
	whole := call.Answer{Outcome: call.Result, Dispatched: true, Status: 200, CostMicros: 10_000}
	if len(r.Inputs) == 0 {
		one := part(r.xs[0])
		one.CostMicros = whole.CostMicros
		return one
	}
	for _, x := range r.xs {
		whole.Members = append(whole.Members, part(x))
	}
	return whole
}

// part is the answer to one call: a failure for those that ask for it.
func part(x string) call.Answer {
	switch {
	case strings.HasPrefix(x, "bad"):
		return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 200, Error: &call.Error{Code: "FAILED_ANSWER", Message: "no " + x}}
	case strings.HasPrefix(x, "none"):
		return call.Answer{Outcome: call.Missing, Dispatched: true, Status: 200}
	}
	a := ok(map[string]any{"x": x})
	return a
}

// lost is an exchange in which the request was executed and the answer did not come.
func (b *bulk) lost(r bulkRequest) *call.Answer {
	b.execute(r)
	a := call.Answer{Outcome: call.Retry, Dispatched: true, Error: &call.Error{Code: "TIMEOUT", Message: "no answer"}}
	if strings.HasSuffix(r.Tool, "posts") {
		a.Outcome, a.Error.Code = call.Unknown, "OUTCOME_UNKNOWN"
	}
	return &a
}

func tooLarge() *call.Answer {
	return &call.Answer{Outcome: call.Failed, Dispatched: true, Status: 413, Split: true, Error: &call.Error{Code: "HTTP_413", Message: "too large"}}
}

func (b *bulk) log() []bulkRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// sizes are how many calls each request carried.
func (b *bulk) sizes() []int {
	var n []int
	for _, r := range b.log() {
		n = append(n, len(r.xs))
	}
	return n
}

const bulkTools = `
version: 1
providers:
  a: {url: "https://a.example", limits: [{rate: 1000000, per: 1s}], noProgress: 30d}
  b: {url: "https://b.example", limits: [{rate: 1000000, per: 1s}], noProgress: 30d}
tools:
  a.get: {method: GET, path: "/{x}"}
  a.cached: {method: GET, path: "/{x}", cache: 30d}
  a.onefenced: {method: POST, fence: Idempotency-Key}
  a.oneposts: {method: POST}
  a.many: {method: POST, idempotent: true, cost: 0.01, batch: {size: SIZE, body: "${inputs.map(i, i.x)}", each: "${body}"}}
  a.posts: {method: POST, batch: {size: SIZE, body: "${inputs.map(i, i.x)}", each: "${body}"}}
  a.fenced: {method: POST, fence: Idempotency-Key, batch: {size: SIZE, body: "${inputs.map(i, i.x)}", each: "${body}"}}
  b.many: {method: POST, idempotent: true, batch: {size: SIZE, body: "${inputs.map(i, i.x)}", each: "${body}"}}
`

const bulkMap = `
version: 1
name: bulk
columns:
  - {name: one, call: a.TOOL, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: after, value: "${cells.one == null ? '-' : cells.one + '!'}"}
`

type bulkWorld struct {
	*world
	bulk  *bulk
	tools string
	text  string
}

// newBulkWorld has a table of one column that calls a tool which takes `size` calls in a request.
func newBulkWorld(t *testing.T, tbl table.Table, tool string, size int) *bulkWorld {
	return &bulkWorld{world: newWorld(t, tbl), bulk: newBulk(t), tools: strings.ReplaceAll(bulkTools, "SIZE", fmt.Sprint(size)),
		text: strings.ReplaceAll(bulkMap, "TOOL", tool)}
}

func (w *bulkWorld) plan(lines ...string) *run.Job {
	w.t.Helper()
	job, err := w.startOf("r1", w.text, w.tools, lines...)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// work goes on with the run until it is done, over its waits, and returns its table.
func (w *bulkWorld) work(job *run.Job) string {
	w.t.Helper()
	got, err := w.tryWork(job)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *bulkWorld) tryWork(job *run.Job) (string, error) {
	for {
		ports := w.ports()
		ports.Gateway, ports.Alive = w.bulk, func(string) bool { return false }
		res, err := job.Slice(w.t.Context(), ports, 0, w.settings)
		switch {
		case err != nil:
			return "", err
		case res.Outcome == run.Done:
			return w.tryExport(job)
		case res.Outcome == run.Parked:
			w.parks = append(w.parks, res.WakeAt)
			time.Sleep(time.Until(res.WakeAt))
		}
	}
}

// echoed is the table in which every row has its own answer.
func echoed(lines []string) string {
	var b strings.Builder
	b.WriteString("x,one,after\n")
	for _, x := range lines[1:] {
		fmt.Fprintf(&b, "%s,%s,%s!\n", x, x, x)
	}
	return b.String()
}
