package sheet_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// somePage has a row of each kind: completed, failed, open with receipts and a cursor, untouched.
func somePage(t *testing.T) *sheet.Page {
	t.Helper()
	p := sheet.NewPage(2, 100, 4)
	for _, e := range []sheet.Entry{
		{Kind: sheet.Received, Row: 100, Receipt: sheet.Receipt{Column: 1, Value: json.RawMessage(`{"a":1}`), Shared: "k1"}},
		{Kind: sheet.RowEnded, Row: 100, Receipt: sheet.Receipt{Column: 2, Shared: "k2"}, Cells: sheet.Cells{json.RawMessage(`"x"`), nil, json.RawMessage(`7`)}},
		{Kind: sheet.RowEnded, Row: 101, Fault: &sheet.Fault{Column: "c", Code: "HTTP_422", Message: "no"}, Cells: sheet.Cells{json.RawMessage(`1.5`)}},
		{Kind: sheet.Received, Row: 102, Receipt: sheet.Receipt{Column: 1, Step: 1, Rejected: true}},
		{Kind: sheet.Received, Row: 102, Receipt: sheet.Receipt{Column: 2, Error: &call.Error{Code: "TIMEOUT", Message: "late"}}},
		{Kind: sheet.Tried, Row: 102, Receipt: sheet.Receipt{Column: 0}, Next: 2, Refused: 1},
	} {
		for range 2 { // applying an entry again changes nothing
			if err := p.Apply(&e, 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func TestPageReadsBackAsItWas(t *testing.T) {
	p := somePage(t)
	if p.Open() != 2 || p.Counts() != (sheet.Counts{Completed: 1, Failed: 1}) {
		t.Errorf("%d open, %+v", p.Open(), p.Counts())
	}
	framed, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sheet.DecodePage(framed)
	if err != nil {
		t.Fatal(err)
	}
	want := somePage(t)
	want.Rows[1].Cells[1], want.Rows[1].Cells[2] = json.RawMessage(`null`), json.RawMessage(`null`) // of a failed row
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := got.Row(100).Cells; string(c[0]) != `"x"` || string(c[1]) != `{"a":1}` || string(c[2]) != `7` {
		t.Errorf("cells %s", c)
	}
}

// H5: what has ended is never open again, whatever is replayed; what is open keeps its cursor until its call ends.
func TestH5EntriesAfterTheEndChangeNothing(t *testing.T) {
	p := somePage(t)
	late := sheet.Entry{Kind: sheet.Received, Row: 100, Receipt: sheet.Receipt{Column: 0, Value: json.RawMessage(`9`)}}
	if err := p.Apply(&late, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(somePage(t), p); diff != "" {
		t.Error(diff)
	}
	if c := p.Row(102).Cursor(0, 0); c == nil || c.Next != 2 {
		t.Errorf("cursor %+v", c)
	}
	ended := sheet.Entry{Kind: sheet.Received, Row: 102, Receipt: sheet.Receipt{Column: 0, Value: json.RawMessage(`9`)}}
	if err := p.Apply(&ended, 3); err != nil || p.Row(102).Cursor(0, 0) != nil {
		t.Errorf("%v, the cursor of a call that has ended is %+v", err, p.Row(102).Cursor(0, 0))
	}
}

func TestEntriesThatDoNotFitAreRefused(t *testing.T) {
	for _, e := range []sheet.Entry{
		{Kind: sheet.RowEnded, Row: 103, Cells: sheet.Cells{json.RawMessage(`1`), nil, json.RawMessage(`1`)}}, // its receipt is lost
		{Kind: sheet.RowEnded, Row: 99}, {Kind: sheet.RowEnded, Row: 104},
		{Kind: sheet.RowEnded, Row: 103, Cells: sheet.Cells{nil, nil, nil, json.RawMessage(`1`)}},
	} {
		if err := somePage(t).Apply(&e, 3); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}

// X2: a slice that has lost its shard cannot overwrite the page of its successor.
func TestX2OlderEpochDoesNotOverwriteAPage(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, _ *tabletest.Faulty) {
		done, early := somePage(t), sheet.NewPage(2, 100, 4)
		for epoch, p := range map[int64]*sheet.Page{5: done, 4: early} {
			b, err := p.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := sheet.SavePage(t.Context(), st, "r", epoch, 2, b); err != nil {
				t.Fatal(err)
			}
		}
		got, err := sheet.LoadPage(t.Context(), st, "r", 2)
		if err != nil || got.Open() != 2 {
			t.Errorf("%v, %+v", err, got)
		}
		if _, err := sheet.LoadPage(t.Context(), st, "r", 3); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("a page that was never saved: %v", err)
		}
	})
}

func FuzzDecodePage(f *testing.F) {
	p := sheet.NewPage(0, 0, 1)
	b, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, framed []byte) {
		page, err := sheet.DecodePage(framed)
		if err != nil {
			return
		}
		if _, err := page.Encode(); err != nil {
			t.Error(err)
		}
	})
}
