package laptop

import (
	"strings"
	"testing"
	"time"

	"sluice/e2e/demo"
	"sluice/internal/providersim"
)

// The run is cancelled by a second process while it is parked, and what is finished is exported; then it is taken up again,
// and its table is the right one.
func TestCancelTheDemoWhileItIsParked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sim, args := d.demo(providersim.Demo())
	p := d.sluice(args...)
	eventually(t, demoLasts, "it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	asked := time.Now()
	cancelled := d.sluice("cancel", "demo", "--json").want(0, 10*time.Second).summary()
	p.want(1, 10*time.Second)
	soonEnough(t, "cancel", asked)
	if s := p.summary(); s.Status != "cancelled" || cancelled.Status != "cancelled" || s.Completed != cancelled.Completed || s.Completed == 0 || s.Waiting == 0 {
		t.Errorf("cancelled: %+v, the process says %+v", cancelled, s)
	}
	d.sluice("export", "demo", "--out", "sofar.csv").want(0, 10*time.Second)
	ended := 0
	for n, row := range tableOf(t, d.read("sofar.csv")) {
		switch row["_status"] {
		case "completed", "failed":
			ended++
		case "cancelled":
			if row["company"] != "" {
				t.Errorf("row %d had not ended, and has cells: %v", n+1, row)
			}
		default:
			t.Errorf("row %d is %q", n+1, row["_status"])
		}
	}
	if ended != cancelled.Completed+cancelled.Failed {
		t.Errorf("%d rows had ended, the counts say %+v", ended, cancelled)
	}
	d.sluice("resume", "demo", "--json").want(3, demoLasts)
	demo.CheckTable(t, d.read("enriched.csv"))
	for name, p := range sim.report().Providers {
		if name == "mail" && len(p.CompletedTwice) > 0 {
			t.Errorf("mail charged twice: %+v", p.CompletedTwice)
		}
	}
}

// The run is paused and cancelled again and again, each time by another process, and taken up at once. The table is right, and
// no call is made again but those that a cancellation has interrupted.
func TestPauseAndCancelAnywhere(t *testing.T) {
	random := dice(t)
	c := newCrashes(t, fastDemo(), random)
	p := c.d.sluice(c.args...)
	stops := map[string]int{}
	for range 12 {
		var ended bool
		if p, ended = c.work(p, time.Duration(random.Int64N(int64(800*time.Millisecond)))); ended {
			break
		}
		verb := []string{"pause", "cancel"}[random.IntN(2)]
		from := time.Now()
		said := c.d.sluice(verb, "demo", "--json")
		if !said.ended(20 * time.Second) {
			t.Fatalf("%s does not end", verb)
		}
		switch code := said.cmd.ProcessState.ExitCode(); {
		case code == 2 && strings.Contains(said.err.String(), "there is no"):
			continue // its record is not written yet
		case code == 1 && strings.Contains(said.err.String(), "has ended"):
		case code != 0:
			t.Fatalf("%s: exit code %d, %s", verb, code, said.err)
		}
		if !p.ended(20 * time.Second) {
			t.Fatalf("the process works on after %s; it said:\n%s", verb, p.err)
		}
		if verb == "cancel" {
			soonEnough(t, verb, from)
			c.kills = append(c.kills, kill{from, time.Now()})
		}
		stops[verb]++
		p = c.d.sluice("resume", "demo", "--json")
	}
	p, _ = c.work(p, demoLasts)
	p.want(3, time.Second)
	c.judge()
	t.Logf("stops: %v", stops)
	before := len(c.sim.requests())
	c.d.sluice("retry", "demo", "--json").want(3, demoLasts)
	demo.CheckTable(t, c.d.read("enriched.csv"))
	s := p.summary()
	if again := len(c.sim.requests()) - before; again < 1 || again > 4*s.Failed {
		t.Errorf("%d requests for a retry of %d failed rows", again, s.Failed)
	}
}

// soonEnough checks that it took two seconds at most. A machine that stands still is slower, but not by much.
func soonEnough(t *testing.T, what string, from time.Time) {
	t.Helper()
	if took := time.Since(from); took > 2*time.Second {
		timing(t, from, time.Now(), 500*time.Millisecond, "%s took %v", what, took)
	}
}
