package awssecret

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"sluice/internal/secret"
)

// The two services, over the wire.
func TestT6SecretServices(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		var name string
		for _, key := range []string{"Name", "SecretId"} {
			if v, ok := in[key].(string); ok {
				name = v
			}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		switch {
		case name == "denied":
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"__type":"AccessDeniedException","message":"no"}`))
		case name == "busy":
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"__type":"InternalServerError"}`))
		case name == "throttled":
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"__type":"ThrottlingException","message":"Rate exceeded"}`))
		case name == "none":
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"__type":"ParameterNotFound"}`))
		case strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetParameter"):
			if in["WithDecryption"] != true {
				t.Error("not decrypted")
			}
			_, _ = w.Write([]byte(`{"Parameter":{"Value":"pv"}}`))
		default:
			_, _ = w.Write([]byte(`{"SecretString":"sv"}`))
		}
	}))
	defer server.Close()
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})}
	for want, store := range map[string]secret.Store{"pv": Parameters{ssm.NewFromConfig(cfg)}, "sv": Secrets{secretsmanager.NewFromConfig(cfg)}} {
		if got, err := store.Read(t.Context(), "x"); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		if _, err := store.Read(t.Context(), "denied"); !errors.Is(err, secret.ErrDenied) {
			t.Errorf("denied: %v", err)
		}
		if _, err := store.Read(t.Context(), "none"); !errors.Is(err, secret.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
		// What failed may pass. That the service failed is an answer; that it had too many requests is none to ours.
		for name, answered := range map[string]bool{"busy": true, "throttled": false} {
			if _, err := store.Read(t.Context(), name); err == nil || errors.Is(err, secret.ErrDenied) || errors.Is(err, secret.ErrNotFound) ||
				errors.Is(err, secret.ErrFailed) != answered {
				t.Errorf("%s: %v", name, err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := store.Read(gone, "x"); err == nil || errors.Is(err, secret.ErrFailed) {
			t.Errorf("no answer: %v", err)
		}
	}
}
