package api

import (
	"net/http"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
)

// Provider is a rate scope, a provider with one credential, as it stands.
type Provider struct {
	Scope     string    `json:"scope"`
	Provider  string    `json:"provider"`
	HeldUntil time.Time `json:"heldUntil,omitzero"` // the provider wants nothing before
	call.Why            // with HeldUntil
	Refusals  int       `json:"refusals"` // in a row, without a deadline
	LastGrant time.Time `json:"lastGrant,omitzero"`
	Limits    []Limit   `json:"limits"`
	Leased    int       `json:"leased"` // calls that may be in flight, by all processes together
	Processes int       `json:"processes"`
	Found     *Found    `json:"found,omitempty"` // of a provider that declares no limits
}

// Found is pacer.Found.
type Found struct {
	Concurrency   int       `json:"concurrency"`
	Refused       int       `json:"refused,omitempty"`
	EveryMs       int64     `json:"everyMs,omitempty"`
	RefusedAtMs   int64     `json:"refusedAtMs,omitempty"`
	TestAt        time.Time `json:"testAt,omitzero"`
	LatencyMs     int64     `json:"latencyMs"`
	BestLatencyMs int64     `json:"bestLatencyMs,omitempty"`
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
	if !s.Held.IsZero() {
		p.Why = gateway.Why(pacer.Held, s.HeldBy)
	}
	if f := s.Found; f != nil {
		p.Found = &Found{Concurrency: f.Concurrency, Refused: f.Refused, EveryMs: f.Every.Milliseconds(), RefusedAtMs: f.RefusedAt.Milliseconds(),
			TestAt: f.Test, LatencyMs: f.Latency.Milliseconds(), BestLatencyMs: f.Best.Milliseconds()}
	}
	for _, rule := range s.Rules {
		p.Limits = append(p.Limits, Limit{Rate: rule.Rate, PerMs: rule.Per.Milliseconds(), Burst: rule.Burst, Recent: rule.Recent})
	}
	return p
}
