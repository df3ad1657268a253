package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// How often a request is made, and the waits between: 0.5, 1, 2, 4 s, each with up to half of it on top. Where nobody has
// ever answered, the URL is more likely wrong than its server down.
const (
	tries      = 5
	firstTries = 2
	firstWait  = 500 * time.Millisecond
	// longestAsked is the longest Retry-After that is waited for; who asks for more is believed, and told.
	longestAsked = time.Minute
)

// retried does it again after failures that may pass, if it may be done twice.
func (c *Client) retried(ctx context.Context, once bool, ask func() error) error {
	for try := 1; ; try++ {
		err := ask()
		wait, again := passing(err, once)
		if !again || try >= c.tries() || wait > longestAsked || ctx.Err() != nil {
			return err
		}
		backoff := firstWait << (try - 1)
		backoff += rand.N(backoff / 2) // jitter
		if err := c.pause(ctx, max(wait, backoff)); err != nil {
			return err
		}
	}
}

func (c *Client) tries() int {
	if c.known.Load() {
		return tries
	}
	return firstTries
}

// Passing reports whether an error is of a kind that passes: the API is away, or busy.
func Passing(err error) bool {
	var enough stop
	if errors.As(err, &enough) {
		err = enough.error
	}
	_, again := passing(err, false)
	return again
}

// passing tells whether it is worth asking again, and after which wait at least. Where asking twice might do something
// twice, it must be known that nothing was done.
func passing(err error, once bool) (wait time.Duration, again bool) {
	var refused *Error
	var unreachable *unreachableError
	var enough stop
	switch {
	case errors.As(err, &enough):
	case errors.As(err, &refused):
		limited := refused.Status == http.StatusTooManyRequests
		return refused.RetryAfter, limited || !once && refused.Status >= http.StatusInternalServerError && refused.Status != http.StatusNotImplemented
	case errors.As(err, &unreachable):
		var dial *net.OpError
		return 0, !once || errors.As(err, &dial) && dial.Op == "dial"
	}
	return 0, false
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
