package start

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/strict"
)

// MaxToolTimeout is the longest time that a tool's exchange may take in the cloud. The function that makes calls has
// five minutes for one invocation; the rest is for the call's turn and for the answer.
const MaxToolTimeout = 4 * time.Minute

// ForCloud refuses what a laptop could do and the cloud cannot, and maps that publish for everybody, unless the deployment
// allows that.
func ForCloud(allowPublic bool) func(context.Context, *run.Prepared) error {
	return func(_ context.Context, p *run.Prepared) error {
		if !allowPublic {
			if err := p.CheckPrivate(); err != nil {
				return strict.Wrap(err)
			}
		}
		return CloudTools(p.Tools())
	}
}

// CloudTools refuses catalogues of which the cloud cannot make the calls.
func CloudTools(c *mapspec.Catalogue) error {
	if c == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if t := c.Tools[name]; t.Timeout > MaxToolTimeout {
			return bad("tool %s has a timeout of %s; in the cloud at most %s are possible", name, t.Timeout, MaxToolTimeout)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if strings.HasPrefix(c.Providers[name].Auth.Secret, "env:") {
			return bad("provider %s takes its secret from the environment, which in the cloud is the function's own; use ssm:/name or secretsmanager:id#field", name)
		}
	}
	return nil
}
