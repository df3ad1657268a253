package awslambda

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"sluice/internal/invoke"
)

func config(endpoint string) aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})}
}

// What the API's errors prove, and that no request is repeated behind the caller's back.
func TestWhatTheAPIsErrorsProve(t *testing.T) {
	tests := []struct {
		status               int
		kind, functionError  string
		notStarted, throttle bool
	}{
		{status: 200},
		{status: 200, functionError: "Unhandled"},
		{status: 429, kind: "TooManyRequestsException", notStarted: true, throttle: true},
		{status: 502, kind: "ResourceNotReadyException", notStarted: true, throttle: true},
		{status: 429, kind: "SomethingNew", notStarted: true, throttle: true},
		{status: 404, kind: "ResourceNotFoundException", notStarted: true},
		{status: 403, kind: "AccessDeniedException", notStarted: true},
		{status: 413, kind: "RequestTooLargeException", notStarted: true},
		{status: 500, kind: "ServiceException"},
		{status: 503, kind: "ServiceUnavailableException"},
	}
	for _, tt := range tests {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			b, _ := io.ReadAll(r.Body)
			if string(b) != `{"x":1}` || r.URL.Path != "/2015-03-31/functions/toolexec/invocations" {
				t.Errorf("%s %s", r.URL.Path, b)
			}
			if tt.kind != "" {
				w.Header().Set("X-Amzn-ErrorType", tt.kind)
			}
			if tt.functionError != "" {
				w.Header().Set("X-Amz-Function-Error", tt.functionError)
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, `{"y":2}`)
		}))
		got, err := New(config(server.URL), "toolexec").Invoke(t.Context(), []byte(`{"x":1}`))
		server.Close()
		var not *invoke.NotStartedError
		if errors.As(err, &not) != tt.notStarted || not != nil && not.Throttled != tt.throttle || asked != 1 {
			t.Errorf("%d %s: %v after %d requests", tt.status, tt.kind, err, asked)
		}
		if tt.status == 200 && (err != nil || string(got.Payload) != `{"y":2}` || got.Failed != (tt.functionError != "")) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestNothingSentIsProvable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	var not *invoke.NotStartedError
	if _, err := New(config("http://"+l.Addr().String()), "f").Invoke(t.Context(), nil); !errors.As(err, &not) || not.Throttled {
		t.Errorf("refused connection: %v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		c.Close()
	}))
	defer server.Close()
	if _, err := New(config(server.URL), "f").Invoke(t.Context(), nil); err == nil || errors.As(err, &not) {
		t.Errorf("a connection that broke after the request: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(config(server.URL), "f").Invoke(ctx, nil); !errors.As(err, &not) {
		t.Errorf("cancelled before: %v", err)
	}
}
