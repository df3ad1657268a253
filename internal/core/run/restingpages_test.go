package run

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
)

// Pages whose rows all wait for answers are saved and leave memory, but for a few; the row that comes back finds its wait.
func TestPagesWhoseRowsAllWaitLeaveMemory(t *testing.T) {
	ctx, st := t.Context(), &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	lines := []string{"x"}
	for i := range 12_000 {
		lines = append(lines, fmt.Sprint("r", i))
	}
	job, err := Start(ctx, st, Request{
		ID: "r", InputName: "in.csv", Format: intake.Options{Format: "csv"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte("version: 1\ncolumns: [{name: ok, event: {key: \"${row.x}\"}}]\n"), ToolsFile: "t.yaml",
			Tools: []byte("version: 1\nproviders: {a: {url: \"https://a.example\"}}\ntools: {a.get: {path: /}}\n")},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	journal := sheet.OpenJournal(st, sheet.JournalOptions{Run: "r", Epoch: 1,
		Stats: func() sheet.Stats { return sheet.Stats{} }, Told: func(sheet.Counts, error) {}})
	defer journal.Close()
	p := newPages(job, st, 1, journal, func(err error) { t.Error(err) })
	until, most := time.Now().Add(time.Hour).Truncate(time.Millisecond), 0
	for row := range int64(12_000) {
		page, err := p.enter(ctx, row)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.append(ctx, page, &sheet.Entry{Kind: sheet.Bounded, Row: row, Bound: &sheet.Boundary{Until: until, Key: "k"}}); err != nil {
			t.Fatal(err)
		}
		p.leave(page)
		p.rest(page)
		if row%1000 == 999 {
			if err := p.settle(); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(p.open))
		}
	}
	if n, want := len(job.manifest), restingPages+2; n < 2*want || most > want { // with the one at work and the one read ahead
		t.Errorf("%d of %d pages are kept in memory, want at most %d", most, n, want)
	}
	page, err := p.enter(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b := page.state.Row(0).Boundary(0, 0); b == nil || !b.Until.Equal(until) {
		t.Errorf("row 0 waits at %+v, want until %v", b, until)
	}
	p.leave(page)
}
