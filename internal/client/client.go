// Package client asks a deployment of Sluice by its HTTP API. It owns the retries that are safe and the words for what
// goes wrong; it sends the API's key to the API and to nobody else.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"sluice/internal/api"
)

// KeyHeader carries the API's key.
const KeyHeader = "X-Api-Key"

// requestTimeout bounds one exchange with the API, which itself answers within 30 s. Transfers of files are not bounded.
const requestTimeout = time.Minute

// maxAnswer bounds an answer of the API; tables come by links.
const maxAnswer = 64 << 20

// Client is a deployment that can be asked. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	key   string
	agent string
	http  *http.Client
	pause func(ctx context.Context, d time.Duration) error
	known atomic.Bool // it has answered before
}

// New returns a client for the API at the URL that the deployment has printed. An empty key is not sent.
func New(address, key, userAgent string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the API's URL %q is none: write it as in https://abc.execute-api.eu-central-1.amazonaws.com/v1", address)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API's key has a character that no key has, such as a space or a line break")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Client{base: u, key: key, agent: userAgent, pause: sleep, http: &http.Client{
		// A redirect would take the key along to whoever it names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// URL is where the API is.
func (c *Client) URL() string { return c.base.String() }

// request is one question to the API.
type request struct {
	method string
	path   []string // segments; each is escaped
	query  url.Values
	header http.Header
	body   any
	once   bool // asking twice might do it twice
}

// do asks, as often as is safe and useful, and decodes the answer.
func (c *Client) do(ctx context.Context, r request, into any) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	return c.retried(ctx, r.once, func() error { return c.ask(ctx, r, body, into) })
}

func (c *Client) ask(ctx context.Context, r request, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u := c.base.JoinPath(escaped(r.path)...)
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set(KeyHeader, c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer res.Body.Close()
	c.known.Store(true)
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return c.unreachable(err)
	}
	if res.StatusCode/100 != 2 {
		return c.refused(res, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s does not answer as Sluice's API does: %w; is the URL right?", c.base, err)
	}
	return nil
}

// escaped makes segments of a path of any text. Dots alone, which would lead elsewhere, are not what anything is called.
func escaped(segments []string) []string {
	out := make([]string, len(segments))
	for i, s := range segments {
		if out[i] = url.PathEscape(s); strings.Trim(s, ".") == "" {
			out[i] = strings.Repeat("%2E", len(s)) + "%20"
		}
	}
	return out
}

// Error is what the API, or who stands before it, said to a request that it did not carry out.
type Error struct {
	Status     int
	Code       string // of api.ErrorDetail; empty if the answer was not the API's
	Message    string
	RetryAfter time.Duration // 0: not said
}

func (e *Error) Error() string { return e.Message }

// Code is the code of an error that the API has answered with; empty for any other.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// refused puts an answer that is not a success into words.
func (c *Client) refused(res *http.Response, answer []byte) error {
	var body api.ErrorBody
	if err := json.Unmarshal(answer, &body); err != nil {
		body = api.ErrorBody{}
	}
	e := &Error{Status: res.StatusCode, Code: body.Error.Code, Message: body.Error.Message, RetryAfter: retryAfter(res.Header)}
	switch {
	case res.StatusCode/100 == 3:
		e.Message = fmt.Sprintf("%s redirects to %s, which is not followed; give that URL", c.base, res.Header.Get("Location"))
	case e.Code == "" && res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusUnauthorized:
		e.Message = fmt.Sprintf("%s does not answer as Sluice's API does (%s); is the URL right?", c.base, res.Status)
	case e.Code == missingToken: // what API Gateway says for a path that it does not have
		e.Message = fmt.Sprintf("there is no API of Sluice at %s; the URL ends with the stage, such as /v1", c.base)
	case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusUnauthorized:
		e.Message = c.denied()
	}
	return e
}

const missingToken = "MISSING_AUTHENTICATION_TOKEN"

func (c *Client) denied() string {
	if c.key == "" {
		return fmt.Sprintf("%s asks for a key; set SLUICE_API_KEY", c.base)
	}
	return fmt.Sprintf("%s does not take the key that is in SLUICE_API_KEY", c.base)
}

// unreachableError: there was no whole answer.
type unreachableError struct {
	base string
	err  error
}

func (e *unreachableError) Error() string { return "cannot reach " + e.base + ": " + e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

func (c *Client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // its text repeats the URL
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &unreachableError{c.base.String(), err}
}
