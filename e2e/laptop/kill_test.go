package laptop

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/e2e/demo"
	"sluice/internal/providersim"
)

// The demo's process is killed with kill -9 at random moments and resumed at once, again and again: the table is right, and
// no provider is asked again for what it had answered, but for calls that were in flight at a kill.
func TestKillTheDemo(t *testing.T) {
	t.Parallel()
	kills := number(t, "SLUICE_E2E_KILLS", 25)
	c := newCrashes(t, providersim.Demo(), dice(t))
	if left := c.run(kills, 65*time.Second/time.Duration(kills)); left > 0 { // the demo takes a little longer than that
		t.Logf("%d kills were left when the run ended", left)
	}
}

// The same without the demo's long waits, and a kill nearly as soon as the process has come to work; in as many runs as
// it takes. Not parallel: so many starts of a process would be in the way of those who wait for exact moments.
func TestKillAnywhere(t *testing.T) {
	random := dice(t)
	for left := number(t, "SLUICE_E2E_KILLS", 25); left > 0; {
		c := newCrashes(t, fastDemo(), random)
		left = c.run(left, 400*time.Millisecond)
		c.gaps() // here nothing is held for long
	}
}

func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := number(t, "SLUICE_E2E_SEED", 1+int(time.Now().UnixNano()%1e9))
	t.Logf("SLUICE_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 1))
}

// fastDemo is the demo without its long waits: the same troubles, but minutes have few seconds and seconds allow more.
func fastDemo() providersim.Config {
	c := providersim.Demo()
	for i := range c.Providers {
		p := &c.Providers[i]
		p.Limits = slices.Clone(p.Limits[:1])
		p.Limits[0].Rate *= 4
		p.SlowBy = min(p.SlowBy, providersim.Duration(300*time.Millisecond))
		p.Outages = slices.Clone(p.Outages)
		for j := range p.Outages {
			p.Outages[j].For = providersim.Duration(700 * time.Millisecond)
		}
	}
	return c
}

// crashes is a run of the demo whose process is killed now and then.
type crashes struct {
	t      *testing.T
	d      *desk
	sim    *simulator
	args   []string // of the command that starts the run
	random *rand.Rand
	kills  []kill
}

// kill is one: the moments before and after it.
type kill struct{ from, to time.Time }

func newCrashes(t *testing.T, c providersim.Config, random *rand.Rand) *crashes {
	d := newDesk(t)
	sim, args := d.demo(c)
	return &crashes{t: t, d: d, sim: sim, args: args, random: random}
}

// run works the run to its end, with at most so many kills, which are one mean time apart on average. It returns how many
// were not needed.
func (c *crashes) run(kills int, mean time.Duration) int {
	c.t.Helper()
	p := c.d.sluice(c.args...)
	for ; kills > 0; kills-- {
		var ended bool
		if p, ended = c.work(p, time.Duration(c.random.Int64N(int64(2*mean)))); ended {
			break
		}
		from, to := p.kill()
		c.kills = append(c.kills, kill{from, to})
		p = c.d.sluice("resume", "demo", "--json")
	}
	p, _ = c.work(p, demoLasts)
	p.want(3, time.Second)
	c.judge()
	return kills
}

// work lets the process work for a time. A run that was killed before its input was read cannot be resumed; it is then
// started again, as a user does.
func (c *crashes) work(p *process, d time.Duration) (_ *process, ended bool) {
	c.t.Helper()
	for until := time.Now().Add(d); p.ended(time.Until(until)); {
		if p.cmd.Args[1] != "resume" || p.cmd.ProcessState.ExitCode() != 2 {
			return p, true
		}
		if said := p.err.String(); !strings.Contains(said, "start it again") && !strings.Contains(said, "there is no") {
			c.t.Fatalf("resume after a kill:\n%s", said)
		}
		p = c.d.sluice(c.args...)
	}
	return p, false
}

// What may pass between the end of a call at the provider and its result on the disk here; and between the death of a
// process and the end of a request that it had sent.
const (
	inFlight  = 250 * time.Millisecond
	afterlife = 50 * time.Millisecond
)

// wasInFlight reports whether a call that ended at the provider at that time could not be saved because of a kill.
func (c *crashes) wasInFlight(at time.Time) bool {
	return slices.ContainsFunc(c.kills, func(k kill) bool { return at.After(k.from.Add(-inFlight)) && at.Before(k.to.Add(afterlife)) })
}

// mayRepeat checks that the call that ended at that time was in flight at a kill, so that it had to be made again. On a
// machine that stands still it is in flight for longer, but never for long.
func (c *crashes) mayRepeat(provider string, r providersim.Repeat, at time.Time) {
	c.t.Helper()
	if c.wasInFlight(at) {
		return
	}
	before := time.Hour
	for _, k := range c.kills {
		if k.to.After(at) {
			before = min(before, k.from.Sub(at))
		}
	}
	report := c.t.Errorf
	if before < 2*time.Second {
		report = func(format string, args ...any) {
			timing(c.t, at, at.Add(before), 50*time.Millisecond, format, args...)
		}
	}
	report("%s: paid twice for %s, at %v; the next kill was %v after the call", provider, r.Request, r.At, before)
}

func (c *crashes) judge() {
	c.t.Helper()
	demo.CheckTable(c.t, c.d.read("enriched.csv"))
	c.sim.withinLimits()
	repeated := 0
	for name, p := range c.sim.report().Providers {
		for _, r := range p.CompletedTwice {
			repeated++
			for _, at := range r.At[:len(r.At)-1] {
				c.mayRepeat(name, r, at)
			}
			if name == "mail" { // its calls carry a key, under which it charges once
				c.t.Errorf("mail: charged twice for %s", r.Request)
			}
		}
		c.early(name)
	}
	c.t.Logf("%d kills; %d calls in flight were repeated", len(c.kills), repeated)
}

// early looks at requests that came before an announced deadline: only a refusal in flight at a kill can be missed.
func (c *crashes) early(provider string) {
	c.t.Helper()
	var refused time.Time // the latest refusal before
	all := c.sim.requests()
	slices.SortFunc(all, func(a, b request) int { return a.Time.Compare(b.Time) })
	for _, r := range all {
		if r.Provider != provider {
			continue
		}
		if r.Early && !c.wasInFlight(refused) {
			c.t.Errorf("%s: %s came too early, %v after a refusal that no kill was near", provider, r.Request, r.Time.Sub(refused))
		}
		if r.Refusal != "" {
			refused = r.Time
		}
	}
}

// atOnce is how soon after a kill the next request is sent, unless the run has to wait for a provider anyway: far less
// than the minute for which a dead owner's lease would last.
const atOnce = 3 * time.Second

// gaps checks that nobody waited for the dead: a provider that had been asked in the second before the kill, and did not
// refuse, is asked soon after it.
func (c *crashes) gaps() {
	c.t.Helper()
	all := c.sim.requests()
	slices.SortFunc(all, func(a, b request) int { return a.Time.Compare(b.Time) })
	for _, k := range c.kills {
		before, after := 0, time.Duration(0)
		for _, r := range all {
			if r.Time.Before(k.from) && k.from.Sub(r.Time) < time.Second && r.Provider == "mail" {
				before++
				if r.Refusal != "" || r.Status == 429 {
					before = -1000
				}
			}
			if r.Time.After(k.to) && after == 0 {
				after = r.Time.Sub(k.to)
			}
		}
		if before > 5 && after > atOnce {
			c.t.Errorf("after the kill at %v nothing was sent for %v", k.from, after)
		}
	}
}

// number is a setting from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: it must be a number above 0", name, os.Getenv(name))
	}
	return n
}
