package api

import (
	"net/http"
	"time"

	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
)

// Provider is a rate scope, a provider with one credential, as it stands.
type Provider struct {
	Scope     string    `json:"scope"`
	Provider  string    `json:"provider"`
	HeldUntil time.Time `json:"heldUntil,omitzero"` // the provider wants nothing before
	Refusals  int       `json:"refusals"`           // in a row, without a deadline
	LastGrant time.Time `json:"lastGrant,omitzero"`
	Limits    []Limit   `json:"limits"`
	Leased    int       `json:"leased"` // calls that may be in flight, by all processes together
	Processes int       `json:"processes"`
}

// Limit is a rule and how much of it is used.
type Limit struct {
	Rate   int   `json:"rate"`
	PerMs  int64 `json:"perMs"`
	Burst  int   `json:"burst"`
	Recent int64 `json:"recent"` // permits of the last window
}

// Providers is all of them, by scope.
type Providers struct {
	Providers []Provider `json:"providers"`
}

// listProviders answers GET /providers.
func (h *Handler) listProviders(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	out := Providers{Providers: []Provider{}}
	for s, err := range pacer.List(r.Context(), h.Store.Table) {
		if err != nil {
			return answer{}, err
		}
		out.Providers = append(out.Providers, providerOf(s))
	}
	return ok(out)
}

func providerOf(s pacer.Standing) Provider {
	p := Provider{Scope: s.Scope, Provider: run.ProviderOf(s.Scope), HeldUntil: s.Held, Refusals: s.Streak, LastGrant: s.Granted,
		Limits: []Limit{}, Processes: len(s.Leases)}
	for _, l := range s.Leases {
		p.Leased += l.Calls
	}
	for _, rule := range s.Rules {
		p.Limits = append(p.Limits, Limit{Rate: rule.Rate, PerMs: rule.Per.Milliseconds(), Burst: rule.Burst, Recent: rule.Recent})
	}
	return p
}
