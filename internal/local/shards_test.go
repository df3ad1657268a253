package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/local"
	"sluice/internal/memory"
)

// picky holds the first call of some inputs for as long as it is told.
type picky map[string]time.Duration

func (p picky) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i, a := range batch {
		if wait, ok := p[string(a.Input)]; ok && !a.Retry {
			deliver(i, call.Answer{Outcome: call.Held, Until: time.Now().Add(wait), Dispatched: true, Status: 429})
			continue
		}
		deliver(i, call.Answer{Outcome: call.Result, Value: a.Input, Dispatched: true, Status: 200})
	}
	return nil
}

// A table of 150,000 rows is worked by two shards. Each meets a hold of its own; the run is parked only while both
// wait, and the export joins them in the order of the input.
func TestShardsWaitEachForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 150_000
		st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
		var table strings.Builder
		table.WriteString("x\n")
		for i := range rows {
			fmt.Fprintln(&table, i)
		}
		job, err := run.Start(t.Context(), st, run.Request{
			ID: "r1",
			Documents: sheet.Documents{
				MapFile: "m.yaml", Map: []byte("version: 1\ncolumns:\n  - {name: y, call: a.get, when: \"${index % 10000 == 0}\", with: {x: \"${row.x}\"}, result: \"${result.x}\"}\n"),
				ToolsFile: "t.yaml", Tools: []byte("version: 1\nproviders: {a: {url: \"https://a.example\", limits: [{rate: 1000, per: 1s}], noProgress: 30d}}\ntools: {a.get: {path: \"/{x}\"}}\n"),
			},
			InputName: "in.csv", Format: intake.Options{Format: "csv"},
			Input: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(table.String())), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if job.Run.Shards != 2 {
			t.Fatalf("%d shards", job.Run.Shards)
		}
		var parks []time.Duration
		began := time.Now()
		d := &local.Driver{
			Ports:  run.Ports{Store: st, Gateway: picky{`{"x":"0"}`: time.Hour, `{"x":"140000"}`: 3 * time.Hour}, Owner: "me"},
			OnPark: func(at time.Time) { parks = append(parks, at.Sub(began).Round(time.Minute)) },
		}
		if err := d.Drive(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Minute); took != 3*time.Hour {
			t.Errorf("it took %v", took)
		}
		// Parked for the first hold, and again for the second when the first shard is done.
		if len(parks) != 2 || parks[0] != time.Hour || parks[1] != 3*time.Hour {
			t.Errorf("parks until %v", parks)
		}
		if job.Run.Counts.Completed != rows || job.Run.Stats.Parks != 2 {
			t.Errorf("%+v, %+v", job.Run.Counts, job.Run.Stats)
		}
		var out bytes.Buffer
		if err := job.Export(t.Context(), d.Ports, &out, "jsonl"); err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(&out)
		for i := range rows {
			var rec struct {
				X string  `json:"x"`
				Y *string `json:"y"`
			}
			if err := dec.Decode(&rec); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint(i); rec.X != want || (i%10000 == 0) != (rec.Y != nil && *rec.Y == want) {
				t.Fatalf("row %d is %+v", i, rec)
			}
		}
	})
}
