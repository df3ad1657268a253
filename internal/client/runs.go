package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sluice/internal/api"
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

// Export opens the finished table of a run, a CSV. The caller closes it.
func (c *Client) Export(ctx context.Context, id string) (io.ReadCloser, error) {
	var link api.Download
	if err := c.do(ctx, request{method: http.MethodGet, path: []string{"runs", id, "export"}}, &link); err != nil {
		return nil, err
	}
	var body io.ReadCloser
	err := c.retried(ctx, false, func() (err error) {
		body, err = c.download(ctx, link)
		return err
	})
	return body, err
}

// download gets what a link leads to. The link is all that it takes; the key is the API's alone.
func (c *Client) download(ctx context.Context, link api.Download) (io.ReadCloser, error) {
	u, err := c.base.Parse(link.URL)
	if err != nil {
		return nil, fmt.Errorf("%s names a link that is none", c.base)
	}
	req, err := http.NewRequestWithContext(ctx, link.Method, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.agent)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, &Error{Status: res.StatusCode, Message: fmt.Sprintf("the table of the run is not where %s says: %s answers %s", c.base, u.Host, res.Status)}
	}
	return res.Body, nil
}
