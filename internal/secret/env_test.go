package secret

import (
	"strings"
	"testing"
)

func TestEnv(t *testing.T) {
	env := map[string]string{"ACME_KEY": "k-1", "PADDED": " k-2\n", "EMPTY": ""}
	e := Env{Lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}
	tests := []struct{ ref, want, err string }{
		{"env:ACME_KEY", "k-1", ""},
		{"env:PADDED", "k-2", ""},
		{"env:EMPTY", "", "the environment variable EMPTY is empty; set it before starting: export EMPTY=..."},
		{"env:NONE", "", "the environment variable NONE is not set; set it before starting: export NONE=..."},
		{"env:", "", "not the name of an environment variable"},
		{"env:A B", "", "not the name of an environment variable"},
		{"env:1A", "", "not the name of an environment variable"},
		{"ssm:/prod/acme", "", "ssm: secrets are resolved only in the cloud deployment"},
		{"secretsmanager:acme#key", "", "secretsmanager: secrets are resolved only in the cloud deployment"},
		{"vault:acme", "", "unknown scheme"},
		{"", "", "a reference such as env:NAME"},
		{"sk_live_51H:abcdef", "", "a reference such as env:NAME"},
	}
	for _, tt := range tests {
		got, err := e.Resolve(t.Context(), tt.ref)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, error with %q", tt.ref, got, err, tt.want, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), "sk_live") {
			t.Errorf("Resolve(%q): the error repeats what may be a secret: %v", tt.ref, err)
		}
	}
}

func TestEnvReadsTheEnvironment(t *testing.T) {
	t.Setenv("SLUICE_TEST_SECRET", "v")
	if got, err := (Env{}).Resolve(t.Context(), "env:SLUICE_TEST_SECRET"); got != "v" || err != nil {
		t.Errorf("Resolve = %q, %v", got, err)
	}
}
