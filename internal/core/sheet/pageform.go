package sheet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"sluice/internal/core/frame"
	"sluice/internal/core/value"
)

// pageForm is a page as stored. Rows hold the cells of rows that have ended, null for the others.
type pageForm struct {
	V      int                    `json:"v"`
	Page   int                    `json:"page"`
	First  int64                  `json:"first"`
	Rows   []([]json.RawMessage)  `json:"rows"`
	Faults map[string]*Fault      `json:"faults,omitempty"`
	Open   map[string]openForm    `json:"open,omitempty"`
	Shared map[string]sharedForms `json:"shared,omitempty"`
	Kept   map[string]openForm    `json:"kept,omitempty"`  // of failed rows
	Again  map[string]int64       `json:"again,omitempty"` // of rows that were reopened

	width int // cells in a row
}

type openForm struct {
	Receipts   []Receipt  `json:"receipts,omitempty"`
	Cursors    []Cursor   `json:"cursors,omitempty"`
	Boundaries []Boundary `json:"boundaries,omitempty"`
}

type sharedForms []Receipt

// Encode returns the page's stored form.
func (p *Page) Encode() ([]byte, error) {
	b := make([]byte, 0, 256+64*len(p.Rows))
	b = fmt.Appendf(b, `{"v":1,"page":%d,"first":%d,"rows":[`, p.Number, p.First)
	rest := pageForm{Faults: map[string]*Fault{}, Open: map[string]openForm{}, Shared: map[string]sharedForms{}, Kept: map[string]openForm{}, Again: map[string]int64{}}
	for i := range p.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		row := &p.Rows[i]
		b = appendCellList(b, row)
		rest.gather(strconv.Itoa(i), row)
	}
	b = append(b, ']')
	for _, part := range []struct {
		name  string
		empty bool
		v     any
	}{{"faults", len(rest.Faults) == 0, rest.Faults}, {"open", len(rest.Open) == 0, rest.Open}, {"shared", len(rest.Shared) == 0, rest.Shared},
		{"kept", len(rest.Kept) == 0, rest.Kept}, {"again", len(rest.Again) == 0, rest.Again}} {
		if part.empty {
			continue
		}
		enc, err := json.Marshal(part.v)
		if err != nil {
			return nil, fmt.Errorf("page %d: %w", p.Number, err)
		}
		b = fmt.Appendf(b, `,%q:%s`, part.name, enc)
	}
	return frame.Seal(append(b, '}')), nil
}

func (f *pageForm) gather(key string, row *Row) {
	form := openForm{row.Receipts, row.Cursors, row.Boundaries}
	switch something := len(row.Receipts)+len(row.Cursors)+len(row.Boundaries) > 0; {
	case row.Status == RowOpen && something:
		f.Open[key] = form
	case row.Status == RowFailed && something:
		f.Kept[key] = form
	case row.Status == RowCompleted && len(row.Receipts) > 0:
		f.Shared[key] = row.Receipts
	}
	if row.Again > 0 {
		f.Again[key] = row.Again
	}
	if row.Fault != nil {
		f.Faults[key] = row.Fault
	}
}

func appendCellList(b []byte, row *Row) []byte {
	if row.Status == RowOpen {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for c, cell := range row.Cells {
		if c > 0 {
			b = append(b, ',')
		}
		if cell == nil {
			cell = json.RawMessage("null")
		}
		b = append(b, cell...)
	}
	return append(b, ']')
}

// DecodePage reads a stored page.
func DecodePage(framed []byte) (*Page, error) {
	b, err := frame.Open(framed)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, errors.New("result page: not valid UTF-8")
	}
	var f pageForm
	if err := f.decode(b); err != nil {
		return nil, fmt.Errorf("result page: %w", err)
	}
	if f.V != 1 {
		return nil, fmt.Errorf("result page: version %d is not known to this version of Sluice", f.V)
	}
	p := NewPage(f.Page, f.First, len(f.Rows))
	for i := range f.Rows {
		key, row := strconv.Itoa(i), &p.Rows[i]
		row.Again = f.Again[key]
		if f.Rows[i] == nil {
			open := f.Open[key]
			row.Receipts, row.Cursors, row.Boundaries = open.Receipts, open.Cursors, open.Boundaries
			continue
		}
		row.Cells, row.Fault, row.Receipts = f.Rows[i], f.Faults[key], f.Shared[key]
		row.Status = RowCompleted
		if row.Fault != nil {
			row.Status = RowFailed
			if kept, ok := f.Kept[key]; ok { // older pages have of failed rows what of others
				row.Receipts, row.Cursors, row.Boundaries = kept.Receipts, kept.Cursors, kept.Boundaries
			}
		}
	}
	return p, nil
}

// decode reads the form. The rows, which are nearly all of it, are read by the value parser, the rest by the generic
// decoder.
func (f *pageForm) decode(b []byte) error {
	var p value.Parser
	p.Reset(b, math.MaxInt64)
	err := p.Members(func(key []byte, _ int) error {
		into := map[string]any{"v": &f.V, "page": &f.Page, "first": &f.First, "faults": &f.Faults, "open": &f.Open, "shared": &f.Shared, "kept": &f.Kept, "again": &f.Again}
		if string(key) == "rows" {
			return p.Each(func() error { return f.row(&p) })
		}
		field := into[string(key)]
		raw, err := p.Raw()
		if err != nil || field == nil {
			return err
		}
		return json.Unmarshal(raw, field)
	})
	if err != nil {
		return err
	}
	return p.End()
}

// row reads the cells of a row that has ended, or the null of one that has not.
func (f *pageForm) row(p *value.Parser) error {
	if p.Next() == 'n' {
		f.Rows = append(f.Rows, nil)
		_, err := p.Raw()
		return err
	}
	cells := make([]json.RawMessage, 0, f.width)
	err := p.Each(func() error {
		raw, err := p.Raw()
		cells = append(cells, raw)
		return err
	})
	f.width = len(cells)
	f.Rows = append(f.Rows, cells)
	return err
}
