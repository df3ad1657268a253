// Package secret resolves references to secrets. It owns their schemes (env:, ssm:, secretsmanager:) and where each
// can be read. It refuses to put a secret's value into an error, and keeps no copy.
package secret

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sluice/internal/core/gateway"
)

// Env resolves env:NAME from the environment of the process, as a laptop does. The zero value is ready to use.
type Env struct {
	// Lookup replaces os.LookupEnv.
	Lookup func(name string) (string, bool)
}

var _ gateway.Secrets = Env{}

// Resolve returns the value of the variable that ref names. An unset or empty variable is an error that says how to
// set it; white space around the value, such as the line break of a file, is removed, because no header can carry it.
func (e Env) Resolve(_ context.Context, ref string) (string, error) {
	scheme, name, found := strings.Cut(ref, ":")
	switch {
	case found && scheme == "env":
		return e.lookup(name)
	case found && (scheme == "ssm" || scheme == "secretsmanager"):
		return "", fmt.Errorf("secret %q: %s: secrets are resolved only in the cloud deployment; use env:NAME here", ref, scheme)
	case found && schemeLike(scheme):
		return "", fmt.Errorf("secret %q: unknown scheme; known are env:NAME, ssm:/name and secretsmanager:id#field", ref)
	}
	// Perhaps the secret itself was written where its reference belongs: it must not be repeated.
	return "", fmt.Errorf("a secret is named by a reference such as env:NAME; what is written there is none")
}

func (e Env) lookup(name string) (string, error) {
	if !variable(name) {
		return "", fmt.Errorf("secret %q: not the name of an environment variable; write for example env:ACME_KEY", "env:"+name)
	}
	get := e.Lookup
	if get == nil {
		get = os.LookupEnv
	}
	value, ok := get(name)
	if value = strings.TrimSpace(value); value != "" {
		return value, nil
	}
	state := "not set"
	if ok {
		state = "empty"
	}
	return "", fmt.Errorf("the environment variable %s is %s; set it before starting: export %s=...", name, state, name)
}

// variable reports whether name is one that shells can set.
func variable(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// schemeLike tells a mistyped scheme ("vault:x") from a secret that happens to contain a colon.
func schemeLike(s string) bool {
	const longest = 16
	return s != "" && len(s) <= longest && !strings.ContainsFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
}
