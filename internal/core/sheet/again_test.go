package sheet_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// A row fails, is reopened, and completes. Its journal is read again from any entry on, over the page as it was saved after
// any later one: the row always comes to the same.
func TestX4AReopenedRowIsReplayedFromAnywhere(t *testing.T) {
	text := func(s string) json.RawMessage { return json.RawMessage(`"` + s + `"`) }
	entries := []*sheet.Entry{
		{Kind: sheet.Reopened, Row: 1, Again: &sheet.Again{Epoch: 2, Receipts: []sheet.Receipt{{Column: 0}, {Column: 1, Rejected: true}}}},
		{Kind: sheet.Tried, Row: 1, Receipt: sheet.Receipt{Column: 1, Step: 1}, Next: 1},
		{Kind: sheet.Received, Row: 1, Receipt: sheet.Receipt{Column: 1, Step: 1, Value: text("b")}},
		{Kind: sheet.RowEnded, Row: 1, Cells: sheet.Cells{nil, nil, text("c")}},
	}
	failed := func() *sheet.Page {
		p := sheet.NewPage(0, 0, 2)
		for _, e := range []*sheet.Entry{
			{Kind: sheet.Received, Row: 1, Receipt: sheet.Receipt{Column: 0, Value: text("a")}},
			{Kind: sheet.Received, Row: 1, Receipt: sheet.Receipt{Column: 1, Rejected: true}},
			{Kind: sheet.Tried, Row: 1, Receipt: sheet.Receipt{Column: 1, Step: 1}, Next: 3, Refused: 2},
			{Kind: sheet.Received, Row: 1, Receipt: sheet.Receipt{Column: 1, Step: 1, Error: &call.Error{Code: "HTTP_500", Message: "no"}}},
			{Kind: sheet.RowEnded, Row: 1, Fault: &sheet.Fault{Column: "x", Code: "HTTP_500", Message: "no"}},
		} {
			if err := p.Apply(e, 3); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	saved := func(p *sheet.Page) *sheet.Page {
		b, err := p.Encode()
		if err == nil {
			p, err = sheet.DecodePage(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	row := saved(failed()).Row(1)
	if row.Status != sheet.RowFailed || len(row.Receipts) != 3 || len(row.Cursors) != 1 || row.Cursors[0].Refused != 2 {
		t.Fatalf("what a failed row keeps: %+v", row)
	}
	for upTo := range len(entries) + 1 {
		for from := range upTo + 1 {
			p := failed()
			for _, e := range entries[:upTo] {
				if err := p.Apply(e, 3); err != nil {
					t.Fatal(err)
				}
			}
			p = saved(p)
			for _, e := range entries[from:] {
				if err := p.Apply(e, 3); err != nil {
					t.Fatalf("saved after %d, read from %d: %v", upTo, from, err)
				}
			}
			got := saved(p).Row(1)
			want := &sheet.Row{Status: sheet.RowCompleted, Cells: []json.RawMessage{text("a"), text("b"), text("c")}, Again: 2}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("saved after %d, read from %d: %s", upTo, from, d)
			}
		}
	}
}
