package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/internal/core/gateway"
)

// Store reads one secret by its name, whole. ErrNotFound and ErrDenied need a human, every other failure may pass:
// ErrFailed is an answer of the store, the rest is none.
type Store interface {
	Read(ctx context.Context, name string) (string, error)
}

var (
	// ErrNotFound: the store has no such secret.
	ErrNotFound = errors.New("no such secret")
	// ErrDenied: the function may not read it.
	ErrDenied = errors.New("access is denied")
	// ErrFailed: the store has answered that it could not do it. That it had too many requests is no such answer.
	ErrFailed = errors.New("the store failed")
)

// Cloud resolves ssm:/name and secretsmanager:id#field in the cloud deployment. It refuses env: the environment of a
// function holds the credentials of its role, and a catalogue could send them anywhere.
type Cloud struct {
	Parameters Store // SSM Parameter Store
	Secrets    Store // Secrets Manager
}

var _ gateway.Secrets = Cloud{}

// Resolve returns the value that ref names, without white space around it. Errors name the reference, never the value.
func (c Cloud) Resolve(ctx context.Context, ref string) (string, error) {
	scheme, name, found := strings.Cut(ref, ":")
	switch {
	case found && scheme == "ssm" && name != "":
		return c.read(ctx, ref, c.Parameters, name, "")
	case found && scheme == "secretsmanager" && name != "":
		id, field, _ := strings.Cut(name, "#")
		return c.read(ctx, ref, c.Secrets, id, field)
	case found && scheme == "env":
		return "", fmt.Errorf("secret %q: env: references are for the command line only; in the cloud use ssm:/name or secretsmanager:id#field", ref)
	case found && schemeLike(scheme):
		return "", fmt.Errorf("secret %q: unknown scheme; known are ssm:/name and secretsmanager:id#field", ref)
	}
	return "", fmt.Errorf("a secret is named by a reference such as ssm:/sluice/acme; what is written there is none")
}

func (c Cloud) read(ctx context.Context, ref string, from Store, name, field string) (string, error) {
	value, err := from.Read(ctx, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("secret %q: it does not exist; create it in the region of the stack", ref)
	case errors.Is(err, ErrDenied):
		return "", fmt.Errorf("secret %q: the function may not read it; its name must lie under the prefix that the stack allows", ref)
	case err != nil:
		return "", &unavailable{ref: ref, err: err}
	}
	if field != "" {
		if value, err = pick(value, field); err != nil {
			return "", fmt.Errorf("secret %q: %w", ref, err)
		}
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("secret %q: it is empty", ref)
	}
	return value, nil
}

// unavailable: the store gave no answer, or one that may be another next time.
type unavailable struct {
	ref string
	err error
}

func (e *unavailable) Error() string {
	return fmt.Sprintf("secret %q: cannot be read now: %v", e.ref, e.err)
}
func (e *unavailable) Unwrap() error   { return e.err }
func (e *unavailable) Temporary() bool { return true }

// Answered reports whether the store said so itself (gateway, T6).
func (e *unavailable) Answered() bool { return errors.Is(e.err, ErrFailed) }
