package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sluice/internal/answers"
	"sluice/internal/api"
	"sluice/internal/start"
)

// Run asks how a run stands.
func (c *Client) Run(ctx context.Context, id string) (v api.View, err error) {
	err = c.do(ctx, request{method: http.MethodGet, path: []string{"runs", id}}, &v)
	return v, err
}

// runsPage is how many runs one request asks for.
const runsPage = 200

// Runs yields all runs, in the order of the API.
func (c *Client) Runs(ctx context.Context) iter.Seq2[api.View, error] {
	return func(yield func(api.View, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(runsPage)}}
		for {
			var page api.Runs
			if err := c.do(ctx, request{method: http.MethodGet, path: []string{"runs"}, query: query}, &page); err != nil {
				yield(api.View{}, err)
				return
			}
			for _, v := range page.Runs {
				if !yield(v, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("before", page.Next)
		}
	}
}

// Start starts a run. The request has an id, so that asking twice is starting once.
func (c *Client) Start(ctx context.Context, req start.Request) (s api.Standing, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: []string{"runs"}, body: req}, &s)
	return s, err
}

// Cancel, Pause and Resume ask for what they say, and tell how the run stands; it is done soon after.
func (c *Client) Cancel(ctx context.Context, id string) (api.Standing, error) {
	return c.verb(ctx, id, "cancel", struct{}{})
}

// Pause is told why, which may be empty.
func (c *Client) Pause(ctx context.Context, id, reason string) (api.Standing, error) {
	return c.verb(ctx, id, "pause", api.PauseRequest{Reason: reason})
}

// Resume may raise the run's budget.
func (c *Client) Resume(ctx context.Context, id string, budget *api.Budget) (api.Standing, error) {
	return c.verb(ctx, id, "resume", api.ResumeRequest{Budget: budget})
}

// Retry runs the failed rows of a run again.
func (c *Client) Retry(ctx context.Context, id string, how api.RetryRequest) (api.Standing, error) {
	return c.verb(ctx, id, "retry", how)
}

// Extend adds the rows that a run does not have to it. Asking twice under the same key is asking once.
func (c *Client) Extend(ctx context.Context, id, key string, by start.Extension) (s api.Standing, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: []string{"runs", id, "extend"}, header: http.Header{api.KeyHeader: {key}}, body: by}, &s)
	return s, err
}

func (c *Client) verb(ctx context.Context, id, name string, body any) (s api.Standing, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: []string{"runs", id, name}, body: body}, &s)
	return s, err
}

// Answer answers an event. Of two answers the first one counts, so that asking twice is harmless.
func (c *Client) Answer(ctx context.Context, a answers.Request) (got api.Answered, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: []string{"answers"}, body: a}, &got)
	return got, err
}

// rowsPage is how many rows one request asks for.
const rowsPage = 1000

// Rows yields the rows of a run that stand like the status, or all of them, in the order of the input.
func (c *Client) Rows(ctx context.Context, id, status string) iter.Seq2[api.Row, error] {
	return func(yield func(api.Row, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(rowsPage)}}
		if status != "" {
			query.Set("status", status)
		}
		for {
			var page api.Rows
			if err := c.do(ctx, request{method: http.MethodGet, path: []string{"runs", id, "rows"}, query: query}, &page); err != nil {
				yield(api.Row{}, err)
				return
			}
			for _, row := range page.Rows {
				if !yield(row, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("cursor", page.Next)
		}
	}
}

// Providers asks how the providers stand.
func (c *Client) Providers(ctx context.Context) (p api.Providers, err error) {
	err = c.do(ctx, request{method: http.MethodGet, path: []string{"providers"}}, &p)
	return p, err
}
