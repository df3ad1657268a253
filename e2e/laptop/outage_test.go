package laptop

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/providersim"
)

// outageRows is how many rows each of the two providers has to do with.
const outageRows = 150

const outageMap = `version: 1
name: outage
columns:
  - {name: alpha, call: alpha.phone, with: {domain: "${row.domain}"}, when: "${row.ask == 'alpha'}"}
  - {name: beta, call: beta.phone, with: {domain: "${row.domain}"}, when: "${row.ask == 'beta'}"}
`

// One of two providers is out, and says for how long: rows that do not need it finish at once, nobody polls, waiting
// costs next to nothing, and the table is right at the end.
func TestOutage(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SLUICE_E2E_OUTAGE"), "20s"))
	if err != nil || length < 15*time.Second {
		t.Fatalf("SLUICE_E2E_OUTAGE: it must be a duration of 15s or more (%v)", err)
	}
	d, sim := outageDesk(t)
	began := time.Now()
	sim.post("/_control/outage", fmt.Sprintf(`{"provider": "beta", "seconds": %d}`, int(length.Seconds())))
	end := began.Add(length)
	p := d.sluice("run", "map.yaml", "--tools", "tools.yaml", "--in", "in.csv", "--out", "out.csv", "--run", "r1", "--json")
	eventually(t, length, "everything is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })

	seen := d.sluice("runs", "r1", "--json").want(0, length).summary()
	if seen.Status != "parked" || seen.Completed != outageRows || seen.Waiting != outageRows {
		t.Errorf("while it is parked: %+v; want %d rows completed and %d waiting", seen, outageRows, outageRows)
	}
	idle(t, p, end)
	if took := time.Until(end); took < 0 {
		t.Fatalf("the machine is too slow: the outage was over %v ago", -took)
	}
	refused := sim.report().Providers["beta"]
	p.want(0, length+2*time.Minute)

	after := sim.report().Providers["beta"]
	if early := slices.IndexFunc(sim.requests(), func(r request) bool { return r.Early }); early >= 0 || after.TooEarly > 0 {
		t.Errorf("beta was polled: %d requests during its outage", after.TooEarly)
	}
	if after.Received != refused.Received+outageRows || after.Completed != outageRows || len(after.CompletedTwice) > 0 {
		t.Errorf("beta: %d refused, then %+v", refused.Received, after)
	}
	if s := p.summary(); s.Parks != 1 || s.Calls.Refused429 != refused.Received {
		t.Errorf("%d parks, %d refused; want 1 and %d", s.Parks, s.Calls.Refused429, refused.Received)
	}
	outageTable(t, d, sim)
	t.Logf("beta refused %d calls at the start of the outage", refused.Received)
}

func outageDesk(t *testing.T) (*desk, *simulator) {
	d := newDesk(t)
	limits := []providersim.Limit{{Rate: 100, Per: providersim.Duration(time.Second)}}
	sim := d.simulate(providersim.Config{Providers: []providersim.Provider{
		{Name: "alpha", Kind: "phone", Limits: limits}, {Name: "beta", Kind: "phone", Limits: limits},
	}})
	var tools, in strings.Builder
	tools.WriteString("version: 1\nproviders:\n")
	for _, name := range []string{"alpha", "beta"} {
		fmt.Fprintf(&tools, "  %s: {url: \"%s/%s\", allowPrivate: true, limits: [{rate: 100, per: 1s}]}\n", name, sim.url, name)
	}
	tools.WriteString("tools:\n")
	for _, name := range []string{"alpha", "beta"} {
		fmt.Fprintf(&tools, "  %s.phone: {path: \"/phones/{domain}\", input: {domain: string}, missing: \"${status == 404}\", result: \"${body.phone}\"}\n", name)
	}
	in.WriteString("domain,ask\n")
	for i := range outageRows { // beta first: its rows must not be in the others' way
		fmt.Fprintf(&in, "b%d.example,beta\n", i)
	}
	for i := range outageRows {
		fmt.Fprintf(&in, "a%d.example,alpha\n", i)
	}
	d.write("tools.yaml", tools.String())
	d.write("map.yaml", outageMap)
	d.write("in.csv", in.String())
	return d, sim
}

// outageTable compares the table with what the providers say when the test itself asks them.
func outageTable(t *testing.T, d *desk, sim *simulator) {
	t.Helper()
	rows := tableOf(t, d.read("out.csv"))
	if len(rows) != 2*outageRows {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		ask, domain := "beta", fmt.Sprintf("b%d.example", i)
		if i >= outageRows {
			ask, domain = "alpha", fmt.Sprintf("a%d.example", i-outageRows)
		}
		want := map[string]string{"domain": domain, "ask": ask, "alpha": "", "beta": ""}
		var answer struct{ Phone string }
		for sim.get("/"+ask+"/phones/"+domain, "", &answer) == 429 {
			time.Sleep(100 * time.Millisecond) // the test may be too fast, too
		}
		want[ask] = answer.Phone
		for name, v := range want {
			if row[name] != v {
				t.Errorf("row %d: %s is %q, want %q", i, name, row[name], v)
			}
		}
	}
}

// What waiting may cost.
const (
	idleFor = 5 * time.Second
	idleCPU = 50 * time.Millisecond
)

// idle measures the processor time that the parked process uses.
func idle(t *testing.T, p *process, end time.Time) {
	t.Helper()
	from, ok := cpuTime(p.cmd.Process.Pid)
	if !ok {
		t.Log("no /proc: processor time is not measured")
		return
	}
	began := time.Now()
	span := min(idleFor, time.Until(end)-2*time.Second)
	if p.ended(span) {
		t.Fatalf("it ended during the outage:\n%s", p.err)
	}
	to, _ := cpuTime(p.cmd.Process.Pid)
	if used := to - from; used >= idleCPU {
		t.Errorf("%v of processor time in %v while everything is parked", used, time.Since(began))
	} else {
		t.Logf("%v of processor time in %v while everything is parked", used, time.Since(began).Round(time.Millisecond))
	}
}

// cpuTime reads utime and stime, which Linux counts in hundredths of a second.
func cpuTime(pid int) (time.Duration, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name before it may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err1 == nil && err2 == nil
}
