package laptop

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/e2e/demo"
	"sluice/internal/providersim"
)

// demo prepares the demo as examples/README.md describes it, with other limits if the providers have others.
func (d *desk) demo(c providersim.Config) (*simulator, []string) {
	d.t.Helper()
	sim := d.simulate(c)
	tools := strings.ReplaceAll(read(d.t, filepath.Join(examples, "tools.yaml")), "http://127.0.0.1:8089", sim.url)
	d.write("tools.yaml", withLimits(tools, c))
	d.write("leads.map.yaml", read(d.t, filepath.Join(examples, "leads.map.yaml")))
	d.write("leads.csv", read(d.t, filepath.Join(examples, "leads.csv")))
	return sim, []string{"run", "leads.map.yaml", "--tools", "tools.yaml", "--in", "leads.csv", "--out", "enriched.csv", "--run", "demo", "--json"}
}

// withLimits declares the providers' limits as they are simulated.
func withLimits(tools string, c providersim.Config) string {
	var out []string
	provider := ""
	for line := range strings.SplitSeq(tools, "\n") {
		name := strings.TrimSuffix(strings.TrimSpace(strings.SplitN(line, "#", 2)[0]), ":")
		for _, p := range c.Providers {
			if name == p.Name {
				provider = name
			}
			if provider == p.Name && name == "limits" {
				for _, l := range p.Limits {
					line += fmt.Sprintf("\n      - {rate: %d, per: %v}", l.Rate, time.Duration(l.Per))
				}
			}
		}
		if !strings.HasPrefix(name, "- {rate:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// demoLasts is ample for the demo.
const demoLasts = 4 * time.Minute

func TestDemoTableIsRight(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sim, args := d.demo(providersim.Demo())
	p := d.sluice(args...).want(3, demoLasts)

	demo.CheckTable(t, d.read("enriched.csv"))
	sim.neverTooFast()
	s, r := p.summary(), sim.report()
	if s.Status != "completed" || s.Parks < 1 {
		t.Errorf("status %s, %d parks", s.Status, s.Parks)
	}
	table := tableOf(t, read(t, filepath.Join(examples, "expected.csv")))
	failed := 0
	for _, row := range table {
		if row["_status"] == "failed" {
			failed++
		}
	}
	if s.Failed != failed || s.Completed != len(table)-failed || s.Total != s.Completed+s.Failed+s.Duplicates || s.Waiting != 0 {
		t.Errorf("rows: %+v; %d of %d should have failed", s, failed, len(table))
	}
	if !strings.Contains(p.err.String(), "parked until ") || !strings.Contains(p.err.String(), "429 until ") {
		t.Errorf("holds and parks are not told:\n%s", p.err)
	}
	agree(t, s, r, sim.requests())
}

var serving = regexp.MustCompile(`serving (http://\S+),`)

// The same demo through a server on the same machine: the same final table.
func TestDemoTableIsRightThroughAServer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sim, args := d.demo(providersim.Demo())
	server := d.sluice("serve", "--addr", "127.0.0.1:0")
	var url string
	eventually(t, demoLasts, "it serves", func() bool {
		if found := serving.FindStringSubmatch(server.err.String()); found != nil {
			url = found[1]
		}
		return url != ""
	})
	p := d.sluice(append(args, "--api", url)...).want(3, demoLasts)
	demo.CheckTable(t, d.read("enriched.csv"))
	sim.neverTooFast()
	s := p.summary()
	if s.Status != "completed" || s.Parks < 1 || !strings.Contains(p.err.String(), "parked until ") {
		t.Errorf("%+v; it said\n%s", s, p.err)
	}
	agree(t, s, sim.report(), sim.requests())
}

// agree compares what the program says with what the providers saw.
func agree(t *testing.T, s summary, r providersim.Report, all []request) {
	t.Helper()
	received, refused := 0, 0
	for _, p := range r.Providers {
		received += p.Received
		refused += p.Answered[429]
	}
	if s.Calls.Dispatched != received || s.Calls.Refused429 != refused {
		t.Errorf("it tells of %d dispatched calls, %d of them refused; the providers saw %d and %d", s.Calls.Dispatched, s.Calls.Refused429, received, refused)
	}
	cost, prices := 0.0, map[string]float64{"acme": 0.01, "alpha": 0.02, "beta": 0.05, "mail": 0.002}
	for _, call := range all {
		if call.Status == 200 && !call.Cut { // what was cut was not received
			cost += prices[call.Provider]
		}
	}
	if got, err := s.Cost.Float64(); err != nil || math.Abs(got-cost) > 1e-6 {
		t.Errorf("cost %s, the providers charge %.6f", s.Cost, cost)
	}
}

// tableOf reads a CSV with a header.
func tableOf(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	records := demo.Records(t, text)
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}
