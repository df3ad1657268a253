package api

import (
	"net/http"
	"strconv"
	"time"

	"sluice/internal/core/export"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// KeyHeader is where a client names its request, so that repeating it is harmless.
const KeyHeader = "Idempotency-Key"

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

// Standing is a run's id and how it stands.
type Standing struct {
	Run    string       `json:"run"`
	Status sheet.Status `json:"status"`
}

// startRun answers POST /runs: 202 for a run that is on its way, however often it is asked for (X1).
func (h *Handler) startRun(r *http.Request) (answer, error) {
	var req start.Request
	if err := decode(r, &req); err != nil {
		return answer{}, err
	}
	key, err := idempotencyKey(r)
	switch {
	case err != nil:
		return answer{}, err
	case key != "" && req.Run != "":
		return answer{}, strict.Errorf("give either `run` or an %s: both name the run", KeyHeader)
	case key != "":
		req.Run = start.KeyID(key)
	}
	rec, err := h.Starter.Start(r.Context(), req)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: Standing{rec.ID, rec.Status}}, nil
}

func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get(KeyHeader)
	if len(key) > maxKey {
		return "", strict.Errorf("the %s is too long; %d characters are possible", KeyHeader, maxKey)
	}
	return key, nil
}

// showRun answers GET /runs/{id}. Whoever watches a run asks this again and again: it costs a few reads, whose number does
// not depend on that of the rows.
func (h *Handler) showRun(r *http.Request) (answer, error) {
	st := h.look()
	rec, err := sheet.Load(r.Context(), st, r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	v, err := DetailOf(r.Context(), st, rec)
	if err == nil {
		v.Finish, err = h.steps(r.Context(), rec)
	}
	if err != nil {
		return answer{}, err
	}
	v.Bill.Note = h.BillNote
	return ok(v)
}

// look is the store for one look at it: an item that several ask for is read once, and they all see the same.
func (h *Handler) look() *store.Store {
	return &store.Store{Table: table.NewOnce(h.Store.Table), Blobs: h.Store.Blobs}
}

// runOf is the run that the path names. A route that takes parameters reads them before.
func (h *Handler) runOf(r *http.Request) (*sheet.Run, error) {
	return sheet.Load(r.Context(), h.Store, r.PathValue("id"))
}

// The length of a page of a list.
const (
	runsDefault, runsMost = 50, 200
)

// listRuns answers GET /runs: newest first, `next` is the `before` of the following page.
func (h *Handler) listRuns(r *http.Request) (answer, error) {
	q, err := query(r, "before", "limit")
	if err != nil {
		return answer{}, err
	}
	most, err := limit(q.Get("limit"), runsDefault, runsMost)
	if err != nil {
		return answer{}, err
	}
	out, st := Runs{Runs: []View{}}, h.look()
	for rec, err := range sheet.ListBefore(r.Context(), st, q.Get("before")) {
		if err != nil {
			return answer{}, err
		}
		if len(out.Runs) == most {
			out.Next = out.Runs[most-1].Run
			break
		}
		v, err := ViewOf(r.Context(), st, rec)
		if err != nil {
			return answer{}, err
		}
		out.Runs = append(out.Runs, v)
	}
	return ok(out)
}

func limit(given string, otherwise, most int) (int, error) {
	if given == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > most {
		return 0, strict.Errorf("`limit` must be a number from 1 to %d", most)
	}
	return n, nil
}

// linksFor is how long a download may begin after it was asked for.
const linksFor = 15 * time.Minute

// exportRun answers GET /runs/{id}/export with a link to the finished table; 409 while there is none (H8). That of a cancelled
// run says of every row how it stands.
func (h *Handler) exportRun(r *http.Request) (answer, error) {
	q, err := query(r, "format")
	if err != nil {
		return answer{}, err
	}
	format := q.Get("format")
	switch format {
	case "":
		format = export.CSV
	case export.CSV, export.JSONL:
	default:
		return answer{}, strict.Errorf("`format` must be %s or %s", export.CSV, export.JSONL)
	}
	rec, err := h.runOf(r)
	if err != nil {
		return answer{}, err
	}
	switch {
	case rec.Whole(), rec.Status == sheet.Cancelled && !rec.StartedAt.IsZero():
	case rec.Status == sheet.Failed:
		return answer{}, problem(http.StatusConflict, NotCompleted, "the run has failed and has no finished table: %s", rec.Error)
	default:
		return answer{}, problem(http.StatusConflict, NotCompleted, "the run is %s; its table can be fetched once it is completed", rec.Status)
	}
	expires := time.Now().Add(linksFor).UTC().Truncate(time.Second)
	link, err := h.Links.Table(r.Context(), rec, format, linksFor)
	if err != nil {
		return answer{}, err
	}
	return ok(Download{Method: link.Method, URL: link.URL, ExpiresAt: expires})
}
