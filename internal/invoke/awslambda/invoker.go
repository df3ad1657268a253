// Package awslambda invokes a function through the Lambda API. It owns the reading of the API's errors: which of them
// prove that the function was not started.
package awslambda

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"sluice/internal/invoke"
)

// Invoker invokes one function.
type Invoker struct {
	client   *lambda.Client
	function string
}

var _ invoke.Invoker = (*Invoker)(nil)

// connections is above the number of invocations that a slice has under way.
const connections = 64

// New returns an Invoker. Its client repeats nothing by itself: a second invocation could make calls a second time.
func New(cfg aws.Config, function string) *Invoker {
	client := lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		o.Retryer = aws.NopRetryer{}
		// An invocation may be silent for as long as the slowest tool takes: no time limit but the caller's.
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = connections
		})
	})
	return &Invoker{client: client, function: function}
}

// Invoke implements invoke.Invoker. Errors are *invoke.NotStartedError where nothing can have happened.
func (i *Invoker) Invoke(ctx context.Context, payload []byte) (invoke.Result, error) {
	if err := ctx.Err(); err != nil {
		return invoke.Result{}, &invoke.NotStartedError{Err: err}
	}
	out, err := i.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &i.function, Payload: payload})
	if err != nil {
		return invoke.Result{}, judge(err)
	}
	return invoke.Result{Payload: out.Payload, Failed: out.FunctionError != nil}, nil
}

// throttles are answers of the API that tell of missing capacity before the function is started.
var throttles = map[string]bool{
	"TooManyRequestsException": true, "EC2ThrottledException": true, "ENILimitReachedException": true,
	"SubnetIPAddressLimitReachedException": true, "ResourceNotReadyException": true, "ThrottlingException": true,
	"ResourceConflictException": true, "ENINotReadyException": true,
}

func judge(err error) error {
	var api smithy.APIError
	var status *awshttp.ResponseError
	switch {
	case errors.As(err, &api) && throttles[api.ErrorCode()]:
		return &invoke.NotStartedError{Throttled: true, Err: err}
	case errors.As(err, &status) && status.HTTPStatusCode() == http.StatusTooManyRequests:
		return &invoke.NotStartedError{Throttled: true, Err: err}
	case errors.As(err, &status) && status.HTTPStatusCode()/100 == 4: // not there, not allowed, not valid
		return &invoke.NotStartedError{Err: err}
	case unsent(err):
		return &invoke.NotStartedError{Err: err}
	}
	return err
}

// unsent reports whether the request provably did not leave: there was no connection to send it by.
func unsent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED)
}
