package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/objects"
	"sluice/internal/sqlite"
)

// sluiceName is how Sluice is printed.
const sluiceName = "Sluice"

// sluiceEngine runs the engine as the command line does, on its SQLite store: a table is read and sealed, its rows are
// worked by slices, and the run is checked and finished. All of that is timed. Only the gateway is the benchmark's: it
// answers without HTTP and without rate limits, which no peer has here either.
func sluiceEngine() Contender {
	return Contender{
		Name: sluiceName,
		Note: "row = row, call = cell that reads the one before; sealing the table and the final check are timed too",
		Run:  runSluice,
	}
}

// runSluice does not ask for the store's pragmas, because its writing connection is its own: internal/sqlite sets
// synchronous=FULL when it opens a file. README.md says how to count the syncs.
func runSluice(ctx context.Context, dir string, load Load) (took time.Duration, err error) {
	table, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	st := &store.Store{Table: table, Blobs: objects.NewFolder(filepath.Join(dir, "blobs"))}
	ports := run.Ports{Store: st, Gateway: instantGateway{load}, Owner: "bench"}
	input, err := sluiceInput(load)
	if err != nil {
		return 0, err
	}

	start := time.Now()
	job, err := run.Start(ctx, st, run.Request{
		Documents: sluiceDocuments(load), InputName: "rows.csv", Concurrency: load.Parallel,
		Format: intake.Options{Format: intake.CSV},
		Input:  func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(input)), nil },
	})
	if err != nil {
		return 0, err
	}
	if err := workSluice(ctx, job, ports); err != nil {
		return 0, err
	}
	took = time.Since(start)
	return took, checkSluice(ctx, job, ports, load)
}

func workSluice(ctx context.Context, job *run.Job, ports run.Ports) error {
	for shard := range job.Run.Shards {
		for outcome := run.More; outcome != run.Done; {
			result, err := job.Slice(ctx, ports, shard, run.Settings{})
			if err != nil {
				return err
			}
			if outcome = result.Outcome; outcome != run.Done && outcome != run.More {
				return fmt.Errorf("a slice ended with %q, although nothing is to be waited for", outcome)
			}
		}
	}
	_, err := job.Finish(ctx, ports, run.Settings{}, nil)
	return err
}

// sluiceInput is the table: one column with the row's number.
func sluiceInput(load Load) ([]byte, error) {
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	_ = w.Write([]string{"row"})
	for row := range load.Rows {
		_ = w.Write([]string{strconv.Itoa(row)})
	}
	w.Flush()
	return file.Bytes(), w.Error()
}

// sluiceDocuments are a map with a column per call, each of which needs the one before, and its tool.
func sluiceDocuments(load Load) sheet.Documents {
	var m strings.Builder
	m.WriteString("version: 1\nname: bench\ncolumns:\n")
	for n := range load.Calls {
		after := "0"
		if n > 0 {
			after = fmt.Sprintf("${cells.c%d.size()}", n-1)
		}
		fmt.Fprintf(&m, "  - name: c%d\n    call: provider.call\n    with: {row: \"${int(row.row)}\", call: %d, after: %q}\n", n, n, after)
	}
	const tools = `version: 1
providers:
  provider: {url: "https://provider.example"}
tools:
  provider.call: {method: GET, path: /, result: "${body}"}
`
	return sheet.Documents{MapFile: "bench.map.yaml", Map: []byte(m.String()), ToolsFile: "tools.yaml", Tools: []byte(tools)}
}

// instantGateway is the provider: it answers in the caller's goroutine, at once.
type instantGateway struct{ load Load }

func (g instantGateway) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i, attempt := range batch {
		var with struct {
			Row  int `json:"row"`
			Call int `json:"call"`
		}
		if err := json.Unmarshal(attempt.Input, &with); err != nil {
			return err
		}
		value := strconv.Quote(callProvider(g.load, with.Row, with.Call)) // plain ASCII: JSON as well
		deliver(i, call.Answer{Outcome: call.Result, Value: json.RawMessage(value), Dispatched: true})
	}
	return nil
}

func checkSluice(ctx context.Context, job *run.Job, ports run.Ports, load Load) error {
	tally := newTally(load)
	for row, err := range job.Rows(ctx, ports) {
		if err != nil {
			return err
		}
		for name, cell := range row.Cells {
			text, ok := cell.(string)
			if !ok {
				return fmt.Errorf("row %d, column %s: %v is not the provider's answer", row.Row, name, cell)
			}
			if err := tally.add(text); err != nil {
				return err
			}
		}
	}
	return tally.complete()
}
