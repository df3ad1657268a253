package dynamo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/internal/dynamo"
)

// reply is what the script has DynamoDB answer: a body, an exception, a failure of the connection, or nothing at all.
type reply struct {
	body   string
	status int // 0 is 200
	err    error
	silent bool
}

// request is what arrived.
type request struct {
	op   string
	body map[string]any
	at   time.Time
}

// script is an HTTP client that answers requests by a function: no socket, so that it runs under a fake clock.
type script struct {
	answer func(n int, r request) reply // n counts from 1; one call at a time

	mu       sync.Mutex
	requests []request
}

// Do implements the client of the SDK.
func (s *script) Do(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	got := request{op: op, at: time.Now()}
	if err := json.Unmarshal(raw, &got.body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	reply := s.answer(len(s.requests), got)
	s.mu.Unlock()
	switch {
	case reply.silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case reply.err != nil:
		return nil, reply.err
	case reply.status == 0:
		reply.status = http.StatusOK
	}
	return &http.Response{
		StatusCode: reply.status,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:       io.NopCloser(strings.NewReader(reply.body)),
		Request:    r,
	}, nil
}

// ops are the operations that arrived, in order.
func (s *script) ops() string {
	var ops []string
	for _, r := range s.requests {
		ops = append(ops, r.op)
	}
	return strings.Join(ops, " ")
}

func exception(status int, name string) reply {
	return reply{status: status, body: `{"__type":"com.amazonaws.dynamodb.v20120810#` + name + `","message":"scripted"}`}
}

var (
	ok        = reply{body: `{}`}
	silence   = reply{silent: true}
	throttle  = exception(400, "ProvisionedThroughputExceededException")
	condition = exception(400, "ConditionalCheckFailedException")
	fault     = exception(500, "InternalServerError")
)

// scripted returns a table whose n-th request gets the n-th reply.
func scripted(t *testing.T, replies ...reply) (*dynamo.Table, *script) {
	s := &script{answer: func(n int, _ request) reply {
		if n > len(replies) {
			t.Errorf("request %d was not expected", n)
			return exception(400, "ValidationException")
		}
		return replies[n-1]
	}}
	return s.table(), s
}

func (s *script) table() *dynamo.Table {
	return dynamo.New(dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://scripted.invalid"),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   s,
	}), "scripted")
}
