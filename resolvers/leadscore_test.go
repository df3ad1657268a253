package resolvers

import (
	"testing"
	"time"

	"sluice/internal/core/resolver"
	"sluice/internal/core/resolver/resolvertest"
)

// providers answer for a company with so many employees.
func providers(employees int) resolvertest.World {
	return resolvertest.World{Tools: map[string]resolvertest.Tool{
		"acme.company": func(with map[string]any) (any, error) {
			if with["domain"] == "nobody.example" {
				return nil, nil
			}
			return map[string]any{"name": "Acme", "employees": employees}, nil
		},
		"alpha.phone": func(map[string]any) (any, error) { return "+49 30 1", nil },
		"mail.verify": func(with map[string]any) (any, error) { return with["email"] == "ann@acme.example", nil },
	}}
}

var lead = map[string]any{"domain": "acme.example", "email": "ann@acme.example"}

func TestLeadScore(t *testing.T) {
	for name, tc := range map[string]struct {
		world resolvertest.World
		with  map[string]any
		want  any
		took  time.Duration
	}{
		"small and reachable": {providers(80), lead, int64(58), 0},
		"no such company":     {providers(80), map[string]any{"domain": "nobody.example"}, int64(0), 0},
		"wrong address":       {providers(80), map[string]any{"domain": "acme.example", "email": "x"}, int64(28), 0},
		"large, nobody looks": {providers(5000), lead, int64(100), 72 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := resolvertest.Everywhere(t, tc.world, leadScore, tc.with)
			if got.Value != tc.want || got.Err != nil || got.Took != tc.took {
				t.Errorf("%+v, want %v after %v", got, tc.want, tc.took)
			}
		})
	}
}

func TestLeadScoreThatAPersonGives(t *testing.T) {
	w := providers(5000)
	w.Answers = map[string]resolvertest.Answer{"score Acme": {Value: 75, After: 5 * time.Hour}}
	got := resolvertest.Everywhere(t, w, leadScore, lead)
	if got.Value != int64(75) || got.Took != 5*time.Hour || len(got.Calls) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestLeadScoreWaitsForItsProviders(t *testing.T) {
	w := providers(80)
	asked := 0
	w.Tools["alpha.phone"] = func(map[string]any) (any, error) {
		if asked++; asked == 1 {
			return nil, resolvertest.Hold(time.Hour)
		}
		return nil, &resolver.Error{Code: "HTTP_500", Message: "down"}
	}
	got := resolvertest.Run(t, w, leadScore, lead)
	if got.Err == nil || got.Took != time.Hour {
		t.Errorf("%+v", got)
	}
}

func TestEveryResolverIsWhole(t *testing.T) {
	for name, r := range All() {
		if r.Run == nil || name == "" {
			t.Errorf("%q is not whole", name)
		}
	}
}
