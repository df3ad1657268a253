package answers

import (
	"strings"
	"time"

	"sluice/internal/core/link"
	"sluice/internal/core/run"
)

// Path is where the page is mounted; a link's text follows it.
const Path = "/answers/"

// Links makes the addresses at which people answer, for a page that is served below a base URL.
func Links(secret link.Secret, base string) run.Linker {
	base = strings.TrimSuffix(base, "/")
	return func(at link.Place, until time.Time) string { return base + Path + secret.Sign(at, until) }
}
