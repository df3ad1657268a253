package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/local"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

const askingEach = `
version: 1
columns:
  - {name: ok, event: {key: "go-${row.x}", onTimeout: park}}
  - {name: y, call: a.get, with: {x: "${row.x}"}}
`

// arrivals is a gateway that notes when each input was asked for.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (g *arrivals) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i, a := range batch {
		g.mu.Lock()
		g.at[string(a.Input)] = time.Now()
		g.mu.Unlock()
		deliver(i, call.Answer{Outcome: call.Result, Value: json.RawMessage(`1`), Dispatched: true, Status: 200})
	}
	return nil
}

func (g *arrivals) of(row int) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at[fmt.Sprintf(`{"x":"r%d"}`, row)]
}

// BenchmarkRowsWaiting lets rows of one run wait for answers, and answers some of them while the run is parked: what
// bringing them all to their wait takes, what is saved of the run meanwhile, and how long a row takes from its answer to its
// next call. docs/waiting.md has the figures.
func BenchmarkRowsWaiting(b *testing.B) {
	for _, rows := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("memory/rows=%d", rows), func(b *testing.B) {
			for b.Loop() {
				waitingRows(b, memory.New(), rows)
			}
		})
		b.Run(fmt.Sprintf("sqlite/rows=%d", rows), func(b *testing.B) {
			for b.Loop() {
				tbl, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "state.db"))
				if err != nil {
					b.Fatal(err)
				}
				waitingRows(b, tbl, rows)
				tbl.Close()
			}
		})
	}
}

func waitingRows(b *testing.B, tbl table.Table, rows int) {
	ctx, st, g := context.Background(), &store.Store{Table: tbl, Blobs: memory.NewBlobs()}, &arrivals{at: map[string]time.Time{}}
	lines := []string{"x"}
	for i := range rows {
		lines = append(lines, fmt.Sprint("r", i))
	}
	job, err := run.Start(ctx, st, run.Request{
		ID: "r1", InputName: "in.csv", Format: intake.Options{Format: "csv"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte(askingEach), ToolsFile: "t.yaml",
			Tools: []byte("version: 1\nproviders: {a: {url: \"https://a.example\", limits: [{rate: 1000000, per: 1s}]}}\ntools: {a.get: {path: \"/{x}\"}}\n")},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	parked, stop, done := make(chan struct{}, 1), make(chan struct{}), make(chan error)
	d := &local.Driver{Ports: run.Ports{Store: st, Gateway: g, Owner: "me"}, Settings: run.Settings{Stop: stop},
		OnPark: func(time.Time) {
			select {
			case parked <- struct{}{}:
			default:
			}
		}}
	began := time.Now()
	go func() { done <- d.Drive(ctx, job) }()
	<-parked
	b.ReportMetric(float64(time.Since(began).Microseconds())/float64(rows), "µs/row")

	size := 0
	for item, err := range tbl.Query(ctx, table.Query{Part: "run/r1/shard/0000", From: "checkpoint", To: "checkpoint~"}) {
		if err != nil {
			b.Fatal(err)
		}
		size = len(item.Data)
	}
	b.ReportMetric(float64(size), "checkpoint-bytes")

	var took []time.Duration
	for i := 0; i < rows; i += rows / 20 {
		answered := time.Now()
		if _, err := run.Answer(ctx, st, fmt.Sprint("go-r", i), json.RawMessage("true"), run.Whose{}); err != nil {
			b.Fatal(err)
		}
		for g.of(i).IsZero() {
			time.Sleep(time.Millisecond)
		}
		took = append(took, g.of(i).Sub(answered))
		<-parked
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms/answer-p50")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms/answer-max")
	close(stop)
	<-done
}
