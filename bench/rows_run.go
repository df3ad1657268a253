package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sluice/internal/core/gateway"
	"sluice/internal/core/intake"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/objects"
	"sluice/internal/sqlite"
)

const rowsTools = `version: 1
providers:
  p: {url: "https://p.example", limits: [{rate: 1000000, per: 1s}]}
tools:
  p.get: {method: GET, path: "/x", query: {q: "${input.q}"}}
`

const threeCallsMap = `version: 1
name: rows
columns:
  - {name: one, call: p.get, with: {q: "1${row.email}"}}
  - {name: two, call: p.get, with: {q: "2${row.email}"}}
  - {name: three, call: p.get, with: {q: "3${row.email}"}}
`

var rowsMaps = map[string]string{
	threeCalls: threeCallsMap,
	billed:     threeCallsMap,
	oneCall: `version: 1
name: rows
columns:
  - {name: domain, value: '${row.email.split("@")[1]}'}
  - {name: got, call: p.get, with: {q: "${row.email}"}}
`,
}

// rowsSettings are those of a laptop, or those that save writes, where they are billed: results wait a little for others.
func rowsSettings(load string) run.Settings {
	if load == billed {
		return run.Settings{Linger: 25 * time.Millisecond, Keep: 24 * time.Hour}
	}
	return run.Settings{}
}

// rowsSender is the tool: it answers at once. The gateway around it is the real one, with its permits.
type rowsSender struct{ load string }

// Send implements gateway.Sender.
func (s rowsSender) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	body := `{"ok":true}`
	if s.load != oneCall {
		body = resultOf(r.URL)
	}
	return &gateway.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

// resultOf is 300 bytes of JSON that differ between calls as the answers of an API do: the same fields, other values.
func resultOf(url string) string {
	h := uint64(14695981039346656037)
	for i := range len(url) {
		h = (h ^ uint64(url[i])) * 1099511628211
	}
	text := fmt.Sprintf(`{"id":"%016x","company":"Company %d GmbH","score":%d,"phone":"+49 30 %07d","industry":"%s","employees":%d,"text":"`,
		h*0x9e3779b97f4a7c15, h%1000, h>>8%100, h>>16%10_000_000, []string{"Software", "Logistics", "Food", "Energy"}[h>>40%4], h>>44%4000)
	const size = 300
	const words = "known for reliable delivery and a long list of satisfied customers in many countries, with offices in Berlin, Paris and Oslo since "
	for len(text) < size-2 {
		text += words[:min(len(words), size-2-len(text))]
	}
	return text + `"}`
}

type noSecrets struct{}

// Resolve implements gateway.Secrets; the provider asks for none.
func (noSecrets) Resolve(context.Context, string) (string, error) { return "", nil }

// rowsRun makes one run and measures it.
func rowsRun(ctx context.Context, dir, storeName, load string, rows int) (score rowsScore, err error) {
	if rowsMaps[load] == "" {
		return score, fmt.Errorf("unknown load %q", load)
	}
	meter, st, closeStore, err := rowsStore(ctx, dir, storeName)
	if err != nil {
		return score, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	begun, cpu := time.Now(), cpuSeconds()
	job, err := run.Start(ctx, st, run.Request{
		Documents: sheet.Documents{MapFile: "rows.map.yaml", Map: []byte(rowsMaps[load]), ToolsFile: "tools.yaml", Tools: []byte(rowsTools)},
		InputName: "rows.csv", Format: intake.Options{Format: intake.CSV},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(&people{n: rows}), nil },
	})
	if err != nil {
		return score, err
	}
	sealed, sealedUnits := time.Now(), meter.Usage().WriteUnits
	gw := gateway.New(gateway.Config{Catalogue: job.Tools, Pacer: pacer.New(meter, "bench"), Sender: rowsSender{load}, Secrets: noSecrets{}})
	if err := rowsWork(ctx, job, run.Ports{Store: st, Gateway: gw, Owner: "bench"}, rowsSettings(load)); err != nil {
		return score, err
	}
	worked := time.Now()
	if _, err := job.Finish(ctx, run.Ports{Store: st}, run.Settings{}, nil); err != nil {
		return score, err
	}
	if c := job.Run.Counts; c.Completed != int64(rows) {
		return score, fmt.Errorf("%d of %d rows completed, %d failed", c.Completed, rows, c.Failed)
	}
	return rowsScore{
		Store: storeName, Load: load, Rows: rows, Work: worked.Sub(sealed).Seconds(), All: time.Since(begun).Seconds(), CPU: cpuSeconds() - cpu,
		WriteUnits: float64(meter.Usage().WriteUnits-sealedUnits) / float64(rows), InputUnits: float64(sealedUnits) / float64(rows),
	}, nil
}

func rowsWork(ctx context.Context, job *run.Job, ports run.Ports, settings run.Settings) error {
	for shard := range job.Run.Shards {
		for {
			result, err := job.Slice(ctx, ports, shard, settings)
			if err != nil {
				return err
			}
			if result.Outcome == run.Done {
				break
			}
			if result.Outcome == run.Parked {
				time.Sleep(time.Until(result.WakeAt))
			}
		}
	}
	return nil
}

func rowsStore(ctx context.Context, dir, name string) (*table.Metered, *store.Store, func() error, error) {
	switch name {
	case "memory":
		meter := table.Meter(memory.New())
		return meter, &store.Store{Table: meter, Blobs: memory.NewBlobs()}, func() error { return nil }, nil
	case "sqlite":
		dir, err := os.MkdirTemp(dir, "rows")
		if err != nil {
			return nil, nil, nil, err
		}
		tbl, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"))
		if err != nil {
			return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
		}
		meter := table.Meter(tbl)
		st := &store.Store{Table: meter, Blobs: objects.NewFolder(filepath.Join(dir, "blobs"))}
		return meter, st, func() error { return errors.Join(tbl.Close(), os.RemoveAll(dir)) }, nil
	}
	return nil, nil, nil, fmt.Errorf("unknown store %q; there are memory and sqlite", name)
}
