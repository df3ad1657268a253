// Package resolvers is where this program's own resolvers live: cells that are computed in Go. Add a function here, and name
// it in All; then a map can say `resolve: NAME`. docs/resolvers.md is the guide.
package resolvers

import "sluice/internal/core/resolver"

// All are the resolvers that maps may name, with the tools that each may call.
func All() resolver.Set {
	return resolver.Set{
		"lead_score": {Tools: []string{"acme.company", "alpha.phone", "mail.verify"}, Run: leadScore},
	}
}
