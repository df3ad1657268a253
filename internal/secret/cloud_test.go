package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type shelf map[string]any

func (s shelf) Read(_ context.Context, name string) (string, error) {
	switch v := s[name].(type) {
	case string:
		return v, nil
	case error:
		return "", v
	}
	return "", ErrNotFound
}

func TestT6CloudSecrets(t *testing.T) {
	c := Cloud{
		Parameters: shelf{"/sluice/acme": "p-value\n", "/sluice/none": " ", "/other": ErrDenied, "/down": errors.New("no route"), "/broken": fmt.Errorf("%w: internal error", ErrFailed)},
		Secrets: shelf{"acme": `{"key":"s-value","n":12345678901234567890,"o":{"deep":"hush"}}`, "plain": "hush-hush",
			"arn:aws:secretsmanager:eu-west-1:1:secret:x": "by-arn"},
	}
	tests := []struct {
		ref, want, err string
		passing        bool
	}{
		{"ssm:/sluice/acme", "p-value", "", false},
		{"secretsmanager:acme#key", "s-value", "", false},
		{"secretsmanager:acme#n", "12345678901234567890", "", false},
		{"secretsmanager:plain", "hush-hush", "", false},
		{"secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:x", "by-arn", "", false},
		{"secretsmanager:acme#no", "", `no field "no"`, false},
		{"secretsmanager:acme#o", "", "neither text nor a number", false},
		{"secretsmanager:plain#key", "", "not a JSON object", false},
		{"ssm:/sluice/none", "", "it is empty", false},
		{"ssm:/absent", "", "does not exist", false},
		{"ssm:/other", "", "may not read it", false},
		{"ssm:/down", "", "cannot be read now", true},
		{"ssm:/broken", "", "cannot be read now", true},
		{"ssm:", "", "unknown scheme", false},
		{"env:AWS_SECRET_ACCESS_KEY", "", "for the command line only", false},
		{"vault:x", "", "unknown scheme", false},
		{"sk_live_51H:abcdef", "", "a reference such as", false},
	}
	for _, tt := range tests {
		got, err := c.Resolve(t.Context(), tt.ref)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, error with %q", tt.ref, got, err, tt.want, tt.err)
		}
		var passing interface{ Temporary() bool }
		if errors.As(err, &passing) != tt.passing {
			t.Errorf("Resolve(%q): %v; may pass: want %v", tt.ref, err, tt.passing)
		}
		var told interface{ Answered() bool }
		if answered := errors.As(err, &told) && told.Answered(); answered != (tt.ref == "ssm:/broken") {
			t.Errorf("Resolve(%q): %v; the store's own answer: %v", tt.ref, err, answered)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "sk_live")) {
			t.Errorf("Resolve(%q): the error tells the secret: %v", tt.ref, err)
		}
	}
}
