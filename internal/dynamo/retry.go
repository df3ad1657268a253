package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

const (
	// maxBusy is for how long a request is repeated; the same as a local store waits for a lock.
	maxBusy = time.Minute
	// attemptTimeout ends an attempt without an answer. DynamoDB takes milliseconds; a batch of 16 MB on a slow line takes
	// seconds.
	attemptTimeout = 15 * time.Second
	// The pause before a repetition doubles from firstPause up to maxPause.
	firstPause = 25 * time.Millisecond
	maxPause   = 2 * time.Second
)

// call sends a request, again while DynamoDB is throttling or at fault. lost is the error of an earlier attempt that may
// have been carried out although it failed; nil means that only the last one can have had an effect.
func call[Out any](ctx context.Context, send func(context.Context) (Out, error)) (out Out, lost, err error) {
	p := newPauses()
	for {
		if err := ctx.Err(); err != nil {
			return out, lost, err
		}
		out, err = attempt(ctx, send)
		if err == nil || !repeatable(err) {
			return out, lost, err
		}
		if ctx.Err() == nil && mayHaveEffect(err) {
			lost = err
		}
		if ended := p.wait(ctx); ended != nil {
			return out, lost, because(ended, err)
		}
	}
}

func attempt[Out any](ctx context.Context, send func(context.Context) (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return send(ctx)
}

// because says why repeating ended, and what the last attempt had met.
func because(ended, err error) error {
	if errors.Is(err, ended) {
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}

// repeatable reports whether another attempt may succeed. A context that ended is among it: call looks at its own.
func repeatable(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || throttled(err) ||
		retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

func throttled(err error) bool {
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary
}

// mayHaveEffect is false where the failure proves that nothing was done: it was refused, or no connection was made.
func mayHaveEffect(err error) bool {
	var op *net.OpError
	return !throttled(err) && !(errors.As(err, &op) && op.Op == "dial")
}

// errBusy: DynamoDB was throttling or at fault for maxBusy.
var errBusy = fmt.Errorf("given up after %s", maxBusy)

// pauses are the waits of one operation.
type pauses struct {
	start time.Time
	next  time.Duration
}

func newPauses() *pauses { return &pauses{time.Now(), firstPause} }

// reset starts again after progress.
func (p *pauses) reset() { *p = *newPauses() }

// wait pauses for between half and all of the next pause, at random, so that writers that were refused together do not
// return together. It fails when the context or the operation's time ends.
func (p *pauses) wait(ctx context.Context) error {
	if time.Since(p.start) >= maxBusy {
		return errBusy
	}
	pause := p.next/2 + rand.N(p.next/2+1)
	p.next = min(2*p.next, maxPause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
