package answers

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sluice/internal/core/link"
	"sluice/internal/core/run"
	"sluice/internal/core/store"
)

// Path is where the page is mounted; a link's text follows it.
const Path = "/answers/"

// Links makes the addresses at which people answer, for a page that is served below a base URL.
func Links(secret link.Secret, base string) run.Linker {
	base = strings.TrimSuffix(base, "/")
	return func(at link.Place, until time.Time) string { return base + Path + secret.Sign(at, until) }
}

// NewPage is a page for the desk's store, whose secret is read when it is first needed.
func NewPage(desk *Desk, log *slog.Logger) *Page {
	return &Page{Desk: desk, Secret: Kept(desk.Store), Log: log}
}

// Kept reads the secret of a store, and keeps it.
func Kept(st *store.Store) func(context.Context) (link.Secret, error) {
	var mu sync.Mutex
	var kept link.Secret
	return func(ctx context.Context) (link.Secret, error) {
		mu.Lock()
		defer mu.Unlock()
		if kept != nil {
			return kept, nil
		}
		secret, err := link.Load(ctx, st)
		if err == nil {
			kept = secret
		}
		return secret, err
	}
}
