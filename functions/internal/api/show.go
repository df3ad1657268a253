package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sluice/functions/internal/ending"
	"sluice/internal/api"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
)

// showRun answers GET /runs/{id}.
func (h *Handler) showRun(ctx context.Context, r *request) (reply, error) {
	rec, err := sheet.Load(ctx, h.Store, r.id)
	if err != nil {
		return reply{}, err
	}
	v, err := api.DetailOf(ctx, h.Store, rec)
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
	out := api.Runs{Runs: []api.View{}}
	for rec, err := range sheet.ListBefore(ctx, h.Store, r.query["before"]) {
		if err != nil {
			return reply{}, err
		}
		if len(out.Runs) == most {
			out.Next = out.Runs[most-1].Run
			break
		}
		v, err := api.ViewOf(ctx, h.Store, rec)
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
	return reply{http.StatusOK, api.Download{Method: http.MethodGet, URL: url, ExpiresAt: expires}}, nil
}
