package cloud

import (
	"testing"
	"time"

	"sluice/internal/providersim"
)

// Two runs that know nothing of each other stay within their provider's limit together.
func TestTwoRunsShareALimit(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const rate, each = 40, 60
	per := 10 * time.Second
	provider := named("shared")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify", Limits: []providersim.Limit{{Rate: rate, Per: providersim.Duration(per)}}})
	runs := []string{named("one"), named("two")}
	rows := [][]map[string]any{people("one", each), people("two", each)}
	for i, run := range runs {
		s.start(t, p.verifying(run, provider, rate, per, rows[i]))
	}
	for _, run := range runs {
		s.ended(t, run, "completed", 2*soon)
	}
	r := p.report(provider)
	if r.Windows[0].Max > rate || r.Refused != 0 || r.Received != len(runs)*each {
		t.Errorf("up to %d requests within %v, %d are allowed; %d of %d were refused", r.Windows[0].Max, per, rate, r.Refused, r.Received)
	}
	if took := r.Last.Sub(r.First); took < 2*per { // three windows are needed for 120 calls
		t.Errorf("all was answered within %v", took)
	} else {
		t.Logf("%d calls in %v", r.Received, took.Round(time.Millisecond))
	}
	for i, run := range runs {
		p.verified(provider, s.export(t, run), rows[i])
	}
}
