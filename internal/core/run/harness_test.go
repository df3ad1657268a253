package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// onEveryStore runs a behaviour inside a bubble of fake time, once on each store.
func onEveryStore(t *testing.T, behaviour func(t *testing.T, tbl table.Table)) {
	t.Helper()
	sideBySide(t)
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { behaviour(t, memory.New()) })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		synctest.Test(t, func(t *testing.T) {
			tbl, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer tbl.Close()
			behaviour(t, tbl)
		})
	})
}

// onMemory runs a behaviour inside a bubble of fake time on memory alone: for those that go through many cases.
func onMemory(t *testing.T, behaviour func(t *testing.T, tbl table.Table)) {
	t.Helper()
	sideBySide(t)
	synctest.Test(t, func(t *testing.T) { behaviour(t, memory.New()) })
}

var beside sync.Map // tests that run beside others

// sideBySide lets a test run beside others, each in its own bubble. It may be called more than once for a test; a part of a test
// keeps its place in it.
func sideBySide(t *testing.T) {
	if _, asked := beside.LoadOrStore(t, true); !asked && !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
}

// world is a run's surroundings in a test: a store and a provider that answers as it is told.
type world struct {
	t         *testing.T
	tbl       table.Table
	st        *store.Store
	provider  *provider
	settings  run.Settings
	resolvers resolver.Set
	outside   *store.Store // by which a driver looks for answers; nil: st
	parks     []time.Time
	slices    int
}

func newWorld(t *testing.T, tbl table.Table) *world {
	return &world{t: t, tbl: tbl, st: &store.Store{Table: tbl, Blobs: memory.NewBlobs()}, provider: &provider{started: time.Now()}}
}

// provider is a gateway with scripted answers. It keeps what it was asked.
type provider struct {
	mu      sync.Mutex
	started time.Time
	asked   []asked
	answer  func(a call.Attempt, nth int) call.Answer // nth: how often this input was asked before
	seen    map[string]int
	batches int
	fail    error
}

type asked struct {
	tool, input string
	number      int
	request     string
	fence       string
	at          time.Duration
	retry       bool
	done        bool // answered with a result or a final refusal
}

func (p *provider) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	var wg sync.WaitGroup
	p.mu.Lock()
	p.batches++
	p.mu.Unlock()
	for i, a := range batch {
		p.mu.Lock()
		if p.fail != nil {
			defer p.mu.Unlock()
			return p.fail
		}
		if p.seen == nil {
			p.seen = map[string]int{}
		}
		key := a.Tool + string(a.Input)
		nth := p.seen[key]
		p.seen[key]++
		at := len(p.asked)
		p.asked = append(p.asked, asked{a.Tool, string(a.Input), a.Number, a.RequestID, a.Fence, time.Since(p.started), a.Retry, false})
		p.mu.Unlock()
		wg.Add(1)
		go func() {
			defer wg.Done()
			answer := p.answer(a, nth)
			p.mu.Lock()
			p.asked[at].done = answer.Dispatched && answer.Outcome != call.Held && answer.Outcome != call.Retry
			p.mu.Unlock()
			deliver(i, answer)
		}()
	}
	wg.Wait()
	return nil
}

// calls counts what was asked of a tool with an input that contains the text.
func (p *provider) calls(tool, contains string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, a := range p.asked {
		if a.tool == tool && strings.Contains(a.input, contains) {
			n++
		}
	}
	return n
}

func ok(v any) call.Answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return call.Answer{Outcome: call.Result, Value: b, Dispatched: true, Status: 200}
}

func heldFor(d time.Duration) call.Answer {
	return call.Answer{Outcome: call.Held, Until: time.Now().Add(d), Dispatched: true, Status: 429, Error: &call.Error{Code: "HTTP_429", Message: "slow down"}}
}

// echo answers with the input.
func echo(a call.Attempt, _ int) call.Answer {
	return call.Answer{Outcome: call.Result, Value: a.Input, Dispatched: true, Status: 200}
}

// slowEcho answers with the input, after a while.
func slowEcho(d time.Duration) func(call.Attempt, int) call.Answer {
	return func(a call.Attempt, nth int) call.Answer {
		time.Sleep(d)
		return echo(a, nth)
	}
}

const tools = `
version: 1
providers:
  a: {url: "https://a.example", limits: [{rate: 1000000, per: 1s}], noProgress: 30d}
  b: {url: "https://b.example", limits: [{rate: 1000000, per: 1s}], noProgress: 30d}
tools:
  a.get: {method: GET, path: "/{x}"}
  a.post: {method: POST, path: "/"}
  a.fenced: {method: POST, path: "/", fence: Idempotency-Key}
  a.put: {method: PUT, path: "/{x}", fence: Idempotency-Key}
  a.cached: {method: GET, path: "/c/{x}", cache: 30d}
  b.get: {method: GET, path: "/{x}"}
`

// start plans a run of a map over CSV lines.
func (w *world) start(id, mapText string, lines ...string) *run.Job {
	w.t.Helper()
	job, err := w.tryStart(id, mapText, lines...)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

func (w *world) tryStart(id, mapText string, lines ...string) (*run.Job, error) {
	return run.Start(w.t.Context(), w.st, run.Request{
		ID:        id,
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(tools)},
		InputName: "in.csv", Resolvers: w.resolvers,
		Input:  func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
		Format: intake.Options{Format: "csv"},
	})
}

func (w *world) ports() run.Ports {
	w.slices++
	return run.Ports{Store: w.st, Gateway: w.provider, Resolvers: w.resolvers, Owner: fmt.Sprintf("slice-%d", w.slices)}
}

// slice works one slice of shard 0.
func (w *world) slice(job *run.Job) run.Result {
	w.t.Helper()
	res, err := job.Slice(w.t.Context(), w.ports(), 0, w.settings)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// finish works slices to the end of the run, with the waits between them, and returns the exported table.
func (w *world) finish(job *run.Job) string {
	w.t.Helper()
	for {
		res := w.slice(job)
		switch res.Outcome {
		case run.Done:
			return w.export(job)
		case run.Parked:
			w.parks = append(w.parks, res.WakeAt)
			time.Sleep(time.Until(res.WakeAt))
		case run.Busy:
			w.t.Fatal("the shard is busy")
		}
	}
}

func (w *world) export(job *run.Job) string {
	w.t.Helper()
	text, err := w.tryExport(job)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *world) tryExport(job *run.Job) (string, error) {
	for {
		ports := w.ports()
		ports.Alive = func(string) bool { return false }
		res, err := job.Finish(w.t.Context(), ports, w.settings, nil)
		if err != nil {
			return "", err
		}
		if res.Outcome == run.Done {
			break
		}
		time.Sleep(time.Until(res.WakeAt))
	}
	var b bytes.Buffer
	err := job.Export(w.t.Context(), w.ports(), &b, "csv")
	return b.String(), err
}

func (w *world) checkpoint(job *run.Job) *sheet.Checkpoint {
	w.t.Helper()
	cp, err := sheet.LoadCheckpoint(w.t.Context(), w.st, job.Run.ID, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return cp
}

// rows makes CSV lines with one column x and values 0..n-1.
func rows(n int) []string {
	lines := []string{"x"}
	for i := range n {
		lines = append(lines, fmt.Sprint("r", i))
	}
	return lines
}

var errStore = errors.New("the store is away")
