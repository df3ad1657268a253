package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
)

// steps are those of the run's `finish`, with links to what was published.
func (h *Handler) steps(ctx context.Context, r *sheet.Run) ([]Step, error) {
	var steps []Step
	for _, s := range r.Finish {
		step := Step{FinishStep: s}
		if s.Publish != "" && s.Error == nil {
			link, err := h.publishedLink(ctx, r.ID, s.Publish)
			if err != nil {
				return nil, err
			}
			step.Link = &link
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func (h *Handler) publishedLink(ctx context.Context, id, name string) (Download, error) {
	expires := time.Now().Add(linksFor).UTC().Truncate(time.Second)
	link, err := h.Links.Published(ctx, id, name, linksFor)
	return Download{Method: link.Method, URL: link.URL, ExpiresAt: expires}, err
}

// published answers GET /published/{id}/{name}, which asks for no key: it leads to what a map has published for everybody,
// where that is allowed. What is not there, not public or not allowed looks the same, so that nobody learns which runs
// there are. The content itself is never served from the API's own origin.
func (h *Handler) published(r *http.Request) (answer, error) {
	nothing := problem(http.StatusNotFound, NotFound, "there is nothing at this path")
	if !h.AllowPublic {
		return answer{}, nothing
	}
	name := r.PathValue("name")
	rec, err := h.runOf(r)
	if errors.Is(err, sheet.ErrNoRun) || errors.Is(err, table.ErrInvalid) {
		return answer{}, nothing
	}
	if err != nil {
		return answer{}, err
	}
	public := func(s sheet.FinishStep) bool { return s.Publish == name && s.Public && s.Error == nil }
	if !slices.ContainsFunc(rec.Finish, public) {
		return answer{}, nothing
	}
	link, err := h.publishedLink(r.Context(), rec.ID, name)
	if err != nil {
		return answer{}, err
	}
	to := link.URL
	if !strings.Contains(to, "://") {
		to = "../../" + to // links are relative to where the API is, and this is two steps below
	}
	return answer{status: http.StatusFound, body: link, location: to}, nil
}
