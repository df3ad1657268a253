package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"sluice/internal/api"
)

// Upload sends a file, and returns the key that starts a run with it. The name tells its format. The same file has the same
// key each time. It is read twice, and again where sending it has to be tried again.
func (c *Client) Upload(ctx context.Context, file io.ReadSeeker, name string) (key string, err error) {
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return "", err
	}
	ask := request{method: http.MethodPost, path: []string{"uploads"}, body: api.UploadRequest{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}}
	err = c.retried(ctx, false, func() error {
		var to api.Upload
		if err := c.do(ctx, ask, &to); err != nil { // anew each time: a link is not good for ever
			return stop{err}
		}
		key = to.Key
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return c.put(ctx, to, file, size)
	})
	return key, err
}

func (c *Client) put(ctx context.Context, to api.Upload, file io.Reader, size int64) error {
	if size == 0 {
		file = http.NoBody
	}
	res, err := c.follow(ctx, to.Method, to.URL, io.NopCloser(file), func(r *http.Request) {
		r.ContentLength = size
		for name, value := range to.Headers {
			r.Header.Set(name, value)
		}
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxSaid))
		return &Error{Status: res.StatusCode, Message: fmt.Sprintf("the input was not taken by %s: %s %s", res.Request.URL.Host, res.Status, said), RetryAfter: retryAfter(res.Header)}
	}
	return nil
}

// maxSaid bounds what is quoted of an answer.
const maxSaid = 300

// Export opens the finished table of a run in a format of package export. The caller closes it.
func (c *Client) Export(ctx context.Context, id, format string) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := c.retried(ctx, false, func() error {
		var link api.Download
		if err := c.do(ctx, request{method: http.MethodGet, path: []string{"runs", id, "export"}, query: url.Values{"format": {format}}}, &link); err != nil {
			return stop{err}
		}
		res, err := c.follow(ctx, link.Method, link.URL, http.NoBody, nil)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close()
			return &Error{Status: res.StatusCode, Message: fmt.Sprintf("the table of the run is not where %s says: %s answers %s", c.base, res.Request.URL.Host, res.Status)}
		}
		body = res.Body
		return nil
	})
	return body, err
}

// stop is an error that has been tried again enough.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// follow makes the request of a link. The link is all that it takes; the key is the API's alone.
func (c *Client) follow(ctx context.Context, method, link string, body io.ReadCloser, change func(*http.Request)) (*http.Response, error) {
	base := *c.base
	base.Path += "/" // links may be relative to the API
	u, err := base.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New(c.base.String() + " names a link that is none")
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.agent)
	if change != nil {
		change(req)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return res, nil
}
