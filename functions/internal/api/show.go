package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sluice/functions/internal/ending"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/cost"
	"sluice/internal/edge"
)

// View is a run as it is shown. Durations are milliseconds.
type View struct {
	Run        string       `json:"run"`
	Name       string       `json:"name"`
	Status     sheet.Status `json:"status"`
	Rows       int64        `json:"rows"` // of the sealed input, without duplicates; 0 while staging
	Duplicates int64        `json:"duplicates"`
	Completed  int64        `json:"completed"`
	Failed     int64        `json:"failed"`
	Shards     int          `json:"shards"`
	Error      string       `json:"error,omitempty"`
	CreatedAt  time.Time    `json:"createdAt"`
	StartedAt  time.Time    `json:"startedAt,omitzero"`
	FinishedAt time.Time    `json:"finishedAt,omitzero"`
	WakeAt     time.Time    `json:"wakeAt,omitzero"` // parked: nothing happens before
	Stats      sheet.Stats  `json:"stats"`
	Bill       *cost.Bill   `json:"bill,omitempty"` // so far, at list prices; of one run, not in lists
}

func (h *Handler) view(ctx context.Context, r *sheet.Run) (View, error) {
	status, wake, err := run.Standing(ctx, h.Store, r)
	return View{
		Run: r.ID, Name: r.Name, Status: status, Rows: r.Sealed.Rows, Duplicates: r.Sealed.Duplicates,
		Completed: r.Counts.Completed, Failed: r.Counts.Failed, Shards: r.Shards, Error: r.Error,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, WakeAt: wake, Stats: r.Stats,
	}, err
}

// showRun answers GET /runs/{id}.
func (h *Handler) showRun(ctx context.Context, r *request) (reply, error) {
	rec, err := sheet.Load(ctx, h.Store, r.id)
	if err != nil {
		return reply{}, err
	}
	v, err := h.view(ctx, rec)
	bill := cost.Of(cost.Used(rec))
	v.Bill = &bill
	return reply{http.StatusOK, v}, err
}

// The length of a page of GET /runs.
const (
	pageDefault = 50
	pageMost    = 200
)

// listRuns answers GET /runs: newest first, `next` is the `before` of the following page.
func (h *Handler) listRuns(ctx context.Context, r *request) (reply, error) {
	most := pageDefault
	for name, value := range r.query {
		switch name {
		case "before":
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > pageMost {
				return reply{}, &edge.BadRequest{Message: fmt.Sprintf("`limit` must be a number from 1 to %d", pageMost)}
			}
			most = n
		default:
			return reply{}, &edge.BadRequest{Message: "only `before` and `limit` are known here"}
		}
	}
	out := struct {
		Runs []View `json:"runs"`
		Next string `json:"next,omitempty"`
	}{Runs: []View{}}
	for rec, err := range sheet.ListBefore(ctx, h.Store, r.query["before"]) {
		if err != nil {
			return reply{}, err
		}
		if len(out.Runs) == most {
			out.Next = out.Runs[most-1].Run
			break
		}
		v, err := h.view(ctx, rec)
		if err != nil {
			return reply{}, err
		}
		out.Runs = append(out.Runs, v)
	}
	return reply{http.StatusOK, out}, nil
}

// exportFor is how long a download may begin after it was asked for.
const exportFor = 15 * time.Minute

// exportRun answers GET /runs/{id}/export with a signed URL of the finished table; 409 while there is none (H8).
func (h *Handler) exportRun(ctx context.Context, r *request) (reply, error) {
	rec, err := sheet.Load(ctx, h.Store, r.id)
	if err != nil {
		return reply{}, err
	}
	switch rec.Status {
	case sheet.Completed:
	case sheet.Failed:
		return reply{}, &notReady{"the run has failed and has no finished table: " + rec.Error}
	default:
		return reply{}, &notReady{"the run is " + string(rec.Status) + "; its table can be fetched once it is completed"}
	}
	expires := time.Now().Add(exportFor).UTC().Truncate(time.Second)
	url, err := h.Presigner.PresignGet(ctx, ending.Export(rec.ID), rec.ID+".csv", exportFor)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusOK, struct {
		Method    string    `json:"method"`
		URL       string    `json:"url"`
		ExpiresAt time.Time `json:"expiresAt"`
	}{http.MethodGet, url, expires}}, nil
}
