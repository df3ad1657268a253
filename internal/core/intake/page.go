package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// Row returns row i of the page as a map with all of columns; what the row does not have is null. Give it
// Sealed.Columns: a page of a source that learns columns knows only those met so far.
func (p *Page) Row(i int, columns []string) map[string]any { return rowMap(columns, p.Values[i]) }

// Fill is Row into a map that the caller has.
func (p *Page) Fill(into map[string]any, i int, columns []string) {
	row := p.Values[i]
	for c, name := range columns {
		if c < len(row) {
			into[name] = row[c]
		} else {
			into[name] = nil
		}
	}
}

// draft is a page being filled, and later its rows in their final text.
type draft struct {
	first   int64
	columns []string
	index   []int64
	rows    []byte // [..],[..],
	ends    []int  // where each row ends in rows, after its comma
}

// weight is what the draft counts among the bytes in flight.
func (d *draft) weight() int64 { return int64(min(len(d.rows), heaviest)) }

func (d *draft) reset(first int64) {
	d.first, d.index, d.rows, d.ends = first, d.index[:0], d.rows[:0], d.ends[:0]
}

// full tells whether a row of so many bytes belongs on the next page.
func (d *draft) full(row int) bool {
	return len(d.ends) == MaxPageRows || len(d.ends) > 0 && len(d.rows)+row > MaxPagePlain
}

func (d *draft) add(row []byte, at int64) {
	d.rows = append(d.rows, row...)
	d.ends, d.index = append(d.ends, len(d.rows)), append(d.index, at)
}

// payload is the plain JSON of rows i to j:
//
//	{"v":1,"first":0,"cols":["a"],"base":0,"rows":[["x"]]}
//
// where "base" stands for "index":[..] if the positions follow each other.
func (d *draft) payload(dst []byte, i, j int) ([]byte, error) {
	dst = strconv.AppendInt(append(dst, `{"v":1,"first":`...), d.first+int64(i), 10)
	dst = append(dst, `,"cols":[`...)
	var err error
	for n, c := range d.columns {
		if n > 0 {
			dst = append(dst, ',')
		}
		if dst, err = value.Append(dst, c); err != nil {
			return dst, err
		}
	}
	dst = append(dst, ']')
	index := d.index[i:j]
	if index[len(index)-1]-index[0] == int64(len(index)-1) {
		dst = strconv.AppendInt(append(dst, `,"base":`...), index[0], 10)
	} else {
		dst = append(dst, `,"index":[`...)
		for n, x := range index {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, x, 10)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"rows":[`...)
	dst = append(dst, d.rows[d.start(i):d.ends[j-1]-1]...) // without the last comma
	return append(dst, "]}"...), nil
}

func (d *draft) start(i int) int {
	if i == 0 {
		return 0
	}
	return d.ends[i-1]
}

func pageDigest(plain []byte) string {
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:16])
}

// ReadPage reads page n of the run's sealed input and checks it against its entry in the manifest (H8). A page that
// is missing or different is a *PageError; other errors are the store's.
func ReadPage(ctx context.Context, st *store.Store, run string, ref PageRef, n int) (Page, error) {
	key := pageKey(run, n)
	if ref.Part != "" {
		key = pageKey(under(run, ref.Part), ref.Number)
	}
	framed, _, err := st.Load(ctx, key)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return Page{}, &PageError{Page: n, Reason: "is missing"}
	case errors.Is(err, store.ErrDamaged):
		return Page{}, &PageError{Page: n, Reason: "is damaged", Err: err}
	case err != nil:
		return Page{}, err
	}
	plain, err := frame.Open(framed)
	if err != nil {
		return Page{}, &PageError{Page: n, Reason: "is damaged", Err: err}
	}
	if got := pageDigest(plain); got != ref.Digest {
		return Page{}, &PageError{Page: n, Reason: fmt.Sprintf("differs from what was sealed: its digest is %s and should be %s", got, ref.Digest)}
	}
	page, err := decodePage(plain, ref.Rows)
	if err != nil {
		return Page{}, &PageError{Page: n, Reason: "cannot be read", Err: err}
	}
	if page.First != ref.First || len(page.Values) != ref.Rows {
		return Page{}, &PageError{Page: n, Reason: fmt.Sprintf("has rows %d to %d and should have %d to %d",
			page.First, page.First+int64(len(page.Values))-1, ref.First, ref.First+int64(ref.Rows)-1)}
	}
	page.Number = n
	return page, nil
}

// decodePage reads a payload. rows is the expected number of rows, used as a hint.
func decodePage(plain []byte, rows int) (Page, error) {
	if !utf8.Valid(plain) {
		return Page{}, errors.New("not valid UTF-8")
	}
	d := pageDecoder{base: -1, hint: min(max(rows, 0), MaxPageRows)}
	d.Reset(plain, math.MaxInt64)
	if err := d.Members(d.member); err != nil {
		return Page{}, err
	}
	if err := d.End(); err != nil {
		return Page{}, err
	}
	return d.finish()
}

type pageDecoder struct {
	value.Parser
	page    Page
	version int64
	base    int64
	hint    int
}

func (d *pageDecoder) member(key []byte, off int) (err error) {
	switch string(key) {
	case "v":
		d.version, err = d.integer()
	case "first":
		d.page.First, err = d.integer()
	case "base":
		d.base, err = d.integer()
	case "cols":
		err = d.Each(func() error {
			if d.Next() != '"' {
				return d.Unexpected("a column's name")
			}
			c, err := d.Text()
			d.page.Columns = append(d.page.Columns, string(c))
			return err
		})
	case "index":
		d.page.Index = make([]int64, 0, d.hint)
		err = d.Each(func() error {
			n, err := d.integer()
			d.page.Index = append(d.page.Index, n)
			return err
		})
	case "rows":
		d.page.Values = make([][]any, 0, d.hint)
		err = d.Each(d.row)
	default:
		_, err = d.Value() // of a later version
	}
	return err
}

func (d *pageDecoder) integer() (int64, error) {
	v, err := d.Value()
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, d.Fail(d.Offset(), "not an integer")
	}
	return n, nil
}

func (d *pageDecoder) row() error {
	row := make([]any, 0, len(d.page.Columns))
	err := d.Each(func() error {
		v, err := d.Value()
		row = append(row, v)
		return err
	})
	d.page.Values = append(d.page.Values, row)
	return err
}

func (d *pageDecoder) finish() (Page, error) {
	p := d.page
	if d.version != 1 {
		return Page{}, fmt.Errorf("page version %d is not known to this version of Sluice", d.version)
	}
	if p.Index == nil {
		if d.base < 0 {
			return Page{}, errors.New("the rows have no positions")
		}
		p.Index = make([]int64, len(p.Values))
		for i := range p.Index {
			p.Index[i] = d.base + int64(i)
		}
	}
	if len(p.Index) != len(p.Values) {
		return Page{}, fmt.Errorf("%d positions for %d rows", len(p.Index), len(p.Values))
	}
	for i, row := range p.Values {
		if len(row) > len(p.Columns) {
			return Page{}, fmt.Errorf("row %d has %d values for %d columns", i, len(row), len(p.Columns))
		}
	}
	return p, nil
}
