package laptop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/providersim"
)

// limited prepares runs that make one call a row to a provider with one limit. The makespan is the business of
// `go run . limits` in bench/; here it is only told.
func limited(t *testing.T, rate int, per time.Duration) (*desk, *simulator) {
	d := newDesk(t)
	sim := d.simulate(providersim.Config{Providers: []providersim.Provider{{
		Name: "alpha", Kind: "phone", Limits: []providersim.Limit{{Rate: rate, Per: providersim.Duration(per)}},
	}}})
	d.write("tools.yaml", fmt.Sprintf(`version: 1
providers:
  alpha: {url: "%s/alpha", allowPrivate: true, limits: [{rate: %d, per: %v}]}
tools:
  alpha.phone: {path: "/phones/{domain}", input: {domain: string}, missing: "${status == 404}", result: "${body.phone}"}
`, sim.url, rate, per))
	d.write("map.yaml", `version: 1
name: phones
columns:
  - {name: phone, call: alpha.phone, with: {domain: "${row.domain}"}}
`)
	return d, sim
}

// domains is a table of n domains, which no other from has.
func domains(from, n int) string {
	var b strings.Builder
	b.WriteString("domain\n")
	for i := range n {
		fmt.Fprintf(&b, "company-%d.example\n", from+i)
	}
	return b.String()
}

// launch starts the run id over the domains.
func (d *desk) launch(id string, from, n int) *process {
	d.t.Helper()
	d.write(id+".csv", domains(from, n))
	return d.sluice("run", "map.yaml", "--tools", "tools.yaml", "--in", id+".csv", "--out", id+".out.csv", "--run", id, "--json")
}

// unrefused checks that the provider answered n calls and refused none.
func (s *simulator) unrefused(n int) {
	s.t.Helper()
	p := s.report().Providers["alpha"]
	s.neverTooFast()
	if p.Completed != n || p.Distinct != n || p.Received != n+p.Answered[429] {
		s.t.Errorf("%d calls were answered, %d of them different, %d received; want %d", p.Completed, p.Distinct, p.Received, n)
	}
	refused, odd := 0, mishaps{t: s.t}
	for _, r := range s.requests() {
		if r.Refusal != "" {
			refused++
			per := time.Duration(p.Windows[0].Per)
			odd.timing(r.Time.Add(-per-jitter), r.Time.Add(jitter), slack(per)/2, "the call at %v was refused: %s", r.Time, r.Refusal)
		}
	}
	odd.judge(n)
	if refused > excusable(n) {
		s.t.Errorf("%d of %d calls were refused", refused, n)
	}
	s.t.Logf("%d calls in %v, fullest window %d of %d", n, p.Last.Sub(p.First).Round(time.Millisecond), p.Windows[0].Max, p.Windows[0].Rate)
}

func TestSteadyState(t *testing.T) {
	t.Parallel()
	d, sim := limited(t, 50, time.Second)
	d.launch("r1", 0, 3000).want(0, 3*time.Minute)
	sim.unrefused(3000)
}

// Two processes that know nothing of each other but the state file stay within the limit together.
func TestSteadyStateOfTwoProcesses(t *testing.T) {
	t.Parallel()
	d, sim := limited(t, 50, time.Second)
	one, two := d.launch("r1", 0, 1500), d.launch("r2", 1500, 1500)
	one.want(0, 3*time.Minute)
	two.want(0, 3*time.Minute)
	sim.unrefused(3000)
	for _, p := range []*process{one, two} {
		if s := p.summary(); s.Completed != 1500 || s.Calls.Dispatched != 1500+s.Calls.Refused429 {
			t.Errorf("%+v", s)
		}
	}
}

// A limit of a minute is used as two bursts, and nothing runs between them.
func TestTwoBurstsOnePark(t *testing.T) {
	t.Parallel()
	d, sim := limited(t, 600, time.Minute)
	p := d.launch("r1", 0, 1200).want(0, 4*time.Minute)
	sim.unrefused(1200)

	arrivals := sim.arrivals("alpha")
	first, last := arrivals[0], arrivals[len(arrivals)-1]
	var bursts []int
	for i, at := range arrivals {
		if i == 0 || at.Sub(arrivals[i-1]) > 20*time.Second {
			bursts = append(bursts, 0)
		}
		bursts[len(bursts)-1]++
	}
	if len(bursts) != 2 || bursts[0] != 600 {
		timing(t, first, last, slack(time.Minute)/2, "bursts of %v calls, want 600 and 600", bursts)
	}
	if s := p.summary(); s.Parks != 1 {
		timing(t, first, last, slack(time.Minute)/2, "%d parks, want 1", s.Parks)
	}
}
