package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/answers"
	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/local"
	"sluice/internal/memory"
	pagefiles "sluice/internal/page"
)

// world is a store with runs of the real engine, whose one provider answers as the inputs say, and the API over it.
type world struct {
	t     *testing.T
	st    *store.Store
	looks *table.Metered // what the API asks of the store, apart from the engine
	api   http.Handler
	gate  *gate
	lease time.Duration // of the slices; a checkpoint is written three times in it; 0: the default

	mu      sync.Mutex
	drivers map[string]*driving
}

// driving is a run that somebody works on.
type driving struct {
	parked chan time.Time
	ended  chan error
	kill   context.CancelFunc
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tbl, blobs := memory.New(), memory.NewBlobs()
	w := &world{t: t, st: &store.Store{Table: tbl, Blobs: blobs}, looks: table.Meter(tbl), gate: &gate{}, drivers: map[string]*driving{}}
	w.api = api.New(api.Ports{
		Store: &store.Store{Table: w.looks, Blobs: blobs}, Desk: &answers.Desk{Store: w.st}, Kicker: w, Links: links{}, Page: pagefiles.Handler(), Log: slog.New(slog.DiscardHandler),
	})
	return w
}

const mapText = `
version: 1
name: enrich-leads
columns:
  - {name: phone, call: beta.get, with: {x: "${row.x}"}, when: "${row.x.startsWith('hold')}"}
  - {name: company, call: acme.get, with: {x: "${row.x}"}}
  - {name: size, value: "${size(row.x)}"}
`

const toolsText = `
version: 1
providers:
  acme: {url: "https://acme.example", limits: [{rate: 1000000, per: 1s}]}
  beta: {url: "https://beta.example", limits: [{rate: 1000000, per: 1s}]}
tools:
  beta.get: {method: GET, path: "/{x}"}
  acme.get: {method: GET, path: "/{x}", cost: 0.01}
`

// started plans a run of CSV lines.
func (w *world) started(id, mapText string, lines ...string) *run.Job {
	w.t.Helper()
	job, err := run.Start(w.t.Context(), w.st, run.Request{
		ID:        id,
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(toolsText)},
		InputName: "leads.csv",
		Input:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
		Format:    intake.Options{Format: "csv"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// loaded is a run that was started before.
func (w *world) loaded(id string) *run.Job {
	w.t.Helper()
	job, err := run.LoadJob(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// drive works on a run until it ends, or is asked to stop.
func (w *world) drive(job *run.Job) *driving {
	d := &driving{parked: make(chan time.Time, 100), ended: make(chan error, 1)}
	w.mu.Lock()
	w.drivers[job.Run.ID] = d
	owner := fmt.Sprintf("driver-%d", len(w.drivers))
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	d.kill = cancel
	worker := &local.Driver{
		Ports:    run.Ports{Store: w.st, Gateway: w.gate, Owner: owner},
		Settings: run.Settings{Lease: w.lease},
		OnPark:   func(at time.Time) { d.parked <- at },
	}
	go func() { d.ended <- worker.Drive(ctx, job) }()
	w.t.Cleanup(func() {
		cancel()
		select {
		case <-d.ended:
		case <-time.After(patience):
			w.t.Error("a driver does not end")
		}
	})
	return d
}

// end waits for the end of a run.
func (w *world) end(d *driving) error {
	w.t.Helper()
	select {
	case err := <-d.ended:
		d.ended <- err
		return err
	case <-time.After(patience):
		w.t.Fatal("the run does not end")
		return nil
	}
}

// park waits until a run is parked.
func (w *world) park(d *driving) {
	w.t.Helper()
	select {
	case <-d.parked:
	case <-time.After(patience):
		w.t.Fatal("the run does not park")
	}
}

// completed makes a run of so many rows that is over.
func (w *world) completed(id string, rows int) {
	w.t.Helper()
	if err := w.end(w.drive(w.started(id, mapText, inputs(rows)...))); err != nil {
		w.t.Fatal(err)
	}
}

// inputs are CSV lines with one column x: ok0, ok1, and so on.
func inputs(n int) []string {
	lines := []string{"x"}
	for i := range n {
		lines = append(lines, fmt.Sprint("ok", i))
	}
	return lines
}

// Kick implements api.Kicker: what is asked of a run that nobody works on is done by a driver of its own.
func (w *world) Kick(ctx context.Context, id string) error {
	w.mu.Lock()
	d := w.drivers[id]
	w.mu.Unlock()
	if d != nil && len(d.ended) == 0 {
		return nil // it looks for itself
	}
	err := run.AskedRetry(ctx, run.Ports{Store: w.st, Owner: "kicked"}, run.Settings{}, id)
	if err != nil {
		return err
	}
	job, err := run.LoadJob(ctx, w.st, id)
	if err == nil {
		w.drive(job)
	}
	return err
}

// links answers with addresses that lead back to the API.
type links struct{}

func (links) Upload(context.Context, string, blob.Expected, time.Duration) (api.Link, error) {
	return api.Link{}, errors.New("no uploads here")
}

func (links) Published(_ context.Context, id, name string, _ time.Duration) (api.Link, error) {
	return api.Link{Method: http.MethodGet, URL: "files/" + id + "/" + name}, nil
}

func (links) Table(_ context.Context, r *sheet.Run, format string, _ time.Duration) (api.Link, error) {
	return api.Link{Method: http.MethodGet, URL: "files/" + r.ID + "." + format}, nil
}

// gate is a gateway that answers as the input says: a text that begins with `hold` is refused for twenty minutes, with
// `fail` for good, with `once` the first time, with `lost` the first time without a word whether it was executed, with `wait` is kept until it opens, with `slow` for a moment; anything else
// comes back as it is.
type gate struct {
	mu      sync.Mutex
	release chan struct{}
	seen    map[string]bool
}

// first reports whether it is the first time that this is asked for.
func (g *gate) first(x string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	before := g.seen[x]
	g.seen[x] = true
	return !before
}

func (g *gate) keep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.release)
	g.release = nil
}

func (g *gate) waiting() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.release
}

// Execute implements call.Gateway.
func (g *gate) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	var wg sync.WaitGroup
	for i, a := range batch {
		wg.Go(func() { deliver(i, g.answer(ctx, a)) })
	}
	wg.Wait()
	return ctx.Err()
}

func (g *gate) answer(ctx context.Context, a call.Attempt) call.Answer {
	var input struct {
		X string `json:"x"`
	}
	if err := json.Unmarshal(a.Input, &input); err != nil {
		return call.Answer{Outcome: call.Failed, Error: &call.Error{Code: "BAD_INPUT", Message: err.Error()}}
	}
	switch {
	case strings.HasPrefix(input.X, "hold"):
		return call.Answer{Outcome: call.Held, Until: time.Now().Add(20 * time.Minute), Dispatched: true, Status: 429, Scope: "beta-0123456789abcdef",
			Why:   call.Why{Reason: call.RetryAfter, Code: "HTTP_429"},
			Error: &call.Error{Code: "HTTP_429", Message: "slow down"}}
	case strings.HasPrefix(input.X, "fail"), strings.HasPrefix(input.X, "once") && g.first(input.X):
		return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422,
			Error: &call.Error{Code: "HTTP_422", Message: "acme answered 422 Unprocessable Entity: " + input.X, Status: 422, Attempt: 1, Dispatched: true}}
	case strings.HasPrefix(input.X, "lost") && g.first(input.X):
		return call.Answer{Outcome: call.Unknown, Dispatched: true, Error: &call.Error{Code: call.OutcomeUnknown, Message: "no whole answer within 20s", Attempt: 1, Dispatched: true}}
	case strings.HasPrefix(input.X, "slow"):
		time.Sleep(150 * time.Millisecond)
	case strings.HasPrefix(input.X, "wait"):
		if until := g.waiting(); until != nil {
			select {
			case <-until:
			case <-ctx.Done():
				return call.Answer{Outcome: call.Refused}
			}
		}
	}
	value, err := json.Marshal(map[string]any{"name": input.X, "city": "Łódź"})
	if err != nil {
		return call.Answer{Outcome: call.Failed, Error: &call.Error{Code: "BAD_INPUT", Message: err.Error()}}
	}
	return call.Answer{Outcome: call.Result, Value: value, Dispatched: true, Status: 200, CostMicros: 10_000}
}
