package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/value"
	"sluice/internal/strict"
)

// Bounds of a page of GET /runs/{id}/rows. What is not found within the time is left to the next page.
const (
	rowsDefault, rowsMost = 100, 1000

	rowsTime  = 5 * time.Second
	rowsBytes = 4 << 20 // of the answer: API Gateway and Lambda take 6 MB
)

// Row is a row as it is shown: what run.RowView says, with values as they are stored.
type Row struct {
	Row    int64                      `json:"row"` // 1-based, in the source
	Status string                     `json:"status"`
	Input  map[string]json.RawMessage `json:"input"`
	Cells  map[string]json.RawMessage `json:"cells,omitempty"`
	Error  *sheet.Fault               `json:"error,omitempty"`
	Held   *Held                      `json:"held,omitempty"`
	Waits  *run.WaitView              `json:"waits,omitempty"`
	// Omitted are the columns whose value is too large to be shown; the table has it.
	Omitted []string `json:"omitted,omitempty"`
}

// Held is whom a row waits for, until when and why.
type Held struct {
	Provider string    `json:"provider"`
	Until    time.Time `json:"until"`
	call.Why
}

// Columns are the names of the columns in their order, which the objects of rows have lost.
type Columns struct {
	Input []string `json:"input"`
	Cells []string `json:"cells"`
}

// Rows is a page of rows, in the order of the input.
type Rows struct {
	Columns Columns `json:"columns"`
	Rows    []Row   `json:"rows"`
	Next    string  `json:"next,omitempty"` // the `cursor` of the following page. A page may be short or empty, and another one follow
}

// listRows answers GET /runs/{id}/rows. It reads the pages that it needs, never the whole sheet.
func (h *Handler) listRows(r *http.Request) (answer, error) {
	q, err := query(r, "status", "limit", "cursor")
	if err != nil {
		return answer{}, err
	}
	most, err := limit(q.Get("limit"), rowsDefault, rowsMost)
	if err != nil {
		return answer{}, err
	}
	if s := q.Get("status"); s != "" && !slices.Contains(run.RowStatuses(), s) {
		return answer{}, strict.Errorf("`status` must be one of %v", run.RowStatuses())
	}
	from, err := place(q.Get("cursor"))
	if err != nil {
		return answer{}, err
	}
	job, err := run.LoadJob(r.Context(), h.Store, r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	out, err := h.rowsFrom(r, job, run.RowQuery{From: from, Status: q.Get("status"), Most: most})
	if err != nil {
		return answer{}, err
	}
	return ok(out)
}

// place reads a cursor, which is the place in the sheet to go on from.
func place(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, strict.Errorf("`cursor` must be what `next` said")
	}
	return n, nil
}

func (h *Handler) rowsFrom(r *http.Request, job *run.Job, q run.RowQuery) (Rows, error) {
	out, size, most := Rows{Rows: []Row{}, Columns: columnsOf(job)}, 0, q.Most
	reader, until := job.Reader(h.rows()), time.Now().Add(rowsTime)
	for q.From < job.Run.Sealed.Rows && len(out.Rows) < most && time.Now().Before(until) {
		q.Most = most - len(out.Rows)
		found, next, err := reader.Page(r.Context(), q)
		if err != nil {
			return out, err
		}
		for _, v := range found {
			row, bytes, err := RowOf(v)
			if err != nil {
				return out, err
			}
			if bytes > rowsBytes {
				bytes = row.shorten(bytes)
			}
			if size += bytes; size > rowsBytes && len(out.Rows) > 0 {
				out.Next = strconv.FormatInt(v.Place, 10)
				return out, nil
			}
			out.Rows = append(out.Rows, row)
		}
		q.From = next
	}
	if q.From < job.Run.Sealed.Rows {
		out.Next = strconv.FormatInt(q.From, 10)
	}
	return out, nil
}

func columnsOf(job *run.Job) Columns {
	c := Columns{Input: append([]string{}, job.Run.Sealed.Columns...), Cells: []string{}}
	for _, column := range job.Map.Columns {
		c.Cells = append(c.Cells, column.Name)
	}
	return c
}

// RowOf writes the values of a row, and returns how many bytes they have.
func RowOf(v *run.RowView) (Row, int, error) {
	row := Row{Row: v.Row, Status: v.Status, Error: v.Error, Waits: v.Waits}
	if v.Held != nil {
		row.Held = &Held{Provider: run.ProviderOf(v.Held.Scope), Until: v.Held.Until, Why: v.Held.Why}
	}
	var size int
	var err error
	for _, part := range []struct {
		from map[string]any
		to   *map[string]json.RawMessage
	}{{v.Input, &row.Input}, {v.Cells, &row.Cells}} {
		*part.to = make(map[string]json.RawMessage, len(part.from))
		for name, of := range part.from {
			b, encodeErr := value.Encode(of)
			if encodeErr != nil {
				err = encodeErr
			}
			(*part.to)[name] = b
			size += len(name) + len(b)
		}
	}
	return row, size, err
}

// shorten leaves out the largest values until the row can be shown, and returns its size.
func (r *Row) shorten(size int) int {
	type named struct {
		part map[string]json.RawMessage
		name string
	}
	var all []named
	for _, part := range []map[string]json.RawMessage{r.Input, r.Cells} {
		for name := range part {
			all = append(all, named{part, name})
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(len(b.part[b.name]), len(a.part[a.name])), cmp.Compare(a.name, b.name))
	})
	for _, v := range all {
		if size <= rowsBytes {
			break
		}
		size -= len(v.name) + len(v.part[v.name])
		delete(v.part, v.name)
		r.Omitted = append(r.Omitted, v.name)
	}
	slices.Sort(r.Omitted)
	return size
}
