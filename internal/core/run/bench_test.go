package run_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"sluice/internal/core/gateway"
	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// instant answers every request at once with a fixed body.
type instant struct{ body []byte }

func (s instant) Send(context.Context, *gateway.Request) (*gateway.Response, error) {
	return &gateway.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: s.body}, nil
}

type noSecrets struct{}

func (noSecrets) Resolve(context.Context, string) (string, error) { return "", nil }

// lines is a CSV of n rows that is made while it is read.
type lines struct {
	n, at int
	buf   bytes.Buffer
}

func (l *lines) Read(p []byte) (int, error) {
	for l.buf.Len() < len(p) && l.at <= l.n {
		if l.at == 0 {
			l.buf.WriteString("email,name\n")
		} else {
			fmt.Fprintf(&l.buf, "person%d@company%d.example,Person %d\n", l.at, l.at%1000, l.at)
		}
		l.at++
	}
	return l.buf.Read(p)
}

func (l *lines) Close() error { return nil }

const benchTools = `
version: 1
providers:
  p: {url: "https://p.example", limits: [{rate: 1000000, per: 1s}]}
tools:
  p.get: {method: GET, path: "/x", query: {q: "${input.q}"}}
`

const oneCall = `
version: 1
name: bench
concurrency: 256
columns:
  - {name: domain, value: '${row.email.split("@")[1]}'}
  - {name: got, call: p.get, with: {q: "${row.email}"}}
`

const threeCalls = `
version: 1
name: bench
concurrency: 64
columns:
  - {name: one, call: p.get, with: {q: "1${row.email}"}}
  - {name: two, call: p.get, with: {q: "2${row.email}"}}
  - {name: three, call: p.get, with: {q: "3${row.email}"}}
`

func benchmarkRun(b *testing.B, tbl table.Table, mapText string, body []byte, rows int) {
	b.Helper()
	meter := table.Meter(tbl)
	st := &store.Store{Table: meter, Blobs: memory.NewBlobs()}
	catalogue, err := mapspec.ParseTools("tools.yaml", []byte(benchTools))
	if err != nil {
		b.Fatal(err)
	}
	gw := gateway.New(gateway.Config{Catalogue: catalogue, Pacer: pacer.New(meter, "bench"), Sender: instant{body}, Secrets: noSecrets{}})
	job, err := run.Start(b.Context(), st, run.Request{
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(benchTools)},
		InputName: "in.csv", Input: func() (io.ReadCloser, error) { return &lines{n: rows}, nil }, Format: intake.Options{Format: "csv"},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := time.Now()
	before := meter.Usage()
	for {
		res, err := job.Slice(b.Context(), run.Ports{Store: st, Gateway: gw, Owner: "o"}, 0, run.Settings{})
		if err != nil {
			b.Fatal(err)
		}
		if res.Outcome == run.Done {
			break
		}
	}
	took := time.Since(start)
	b.StopTimer()
	if _, err := job.Finish(b.Context(), run.Ports{Store: st}, run.Settings{}, nil); err != nil {
		b.Fatal(err)
	}
	usage := meter.Usage().Sub(before)
	b.ReportMetric(float64(rows)/took.Seconds(), "rows/s")
	b.ReportMetric(float64(job.Run.Stats.Logical)/took.Seconds(), "calls/s")
	b.ReportMetric(float64(usage.WriteUnits)/float64(rows), "writeunits/row")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MB-sys")
}

func BenchmarkRows(b *testing.B) {
	body := []byte(`{"ok":true}`)
	b.Run("memory", func(b *testing.B) { benchmarkRun(b, memory.New(), oneCall, body, benchRows()) })
	b.Run("sqlite", func(b *testing.B) { benchmarkRun(b, openBench(b), oneCall, body, benchRows()) })
}

func BenchmarkDurableCalls(b *testing.B) {
	body := fmt.Appendf(nil, `{"company":"ACME Holding GmbH","score":87,"phone":"+49 30 1234567","text":%q}`, bytes.Repeat([]byte("lorem ipsum "), 19))
	b.Run("memory", func(b *testing.B) { benchmarkRun(b, memory.New(), threeCalls, body, benchRows()/5) })
	b.Run("sqlite", func(b *testing.B) { benchmarkRun(b, openBench(b), threeCalls, body, benchRows()/5) })
}

func openBench(b *testing.B) table.Table {
	tbl, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tbl.Close() })
	return tbl
}

func benchRows() int { return 100000 }
