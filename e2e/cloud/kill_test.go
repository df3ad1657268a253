package cloud

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/providersim"
)

// inFlight is how long before the kill an answer may have come that could not be saved any more: the time that a batch
// takes to come back from toolexec, and to be committed.
const inFlight = 3 * time.Second

// The function that works a shard is killed with kill -9: the state machine tries again, the next slice waits for the
// dead one's lease, and goes on with what was saved.
func TestKilledFunctionLosesNothing(t *testing.T) {
	s := deployed(t)
	id, provider := named("kill"), named("kill")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify"})
	rows := people("kill", 200)
	s.start(t, p.verifying(id, provider, 20, time.Second, rows)) // 10 s
	eventually(t, soon, "half of the calls are answered", func() bool { return p.report(provider).Completed >= len(rows)/2 })
	from, to := s.kill(t, s.runmap)
	t.Parallel() // until here, no other run was there whose function could have been killed

	s.ended(t, id, "completed", 2*run.Lease+2*soon)
	r := p.report(provider)
	p.onlyInFlightRepeated(from, to)
	if len(r.CompletedTwice) != 0 {
		t.Errorf("charged twice for %v", r.CompletedTwice)
	}
	p.verified(provider, s.export(t, id), rows)

	failed := false
	for _, e := range s.history(t, s.shardExecutions(t, id)[0]) {
		failed = failed || strings.HasSuffix(string(e.Type), "Failed")
	}
	if !failed {
		t.Error("the execution tells of no failure: was a slice at work killed?")
	}
}

// onlyInFlightRepeated checks that what was asked again had not been answered long before the kill.
func (p *providers) onlyInFlightRepeated(from, to time.Time) {
	p.t.Helper()
	first := map[string]request{}
	repeated, early, old := 0, 0, time.Duration(0)
	for _, r := range p.requests() {
		before, again := first[r.Request]
		if !again {
			if r.Status != 429 {
				first[r.Request] = r
			}
			continue
		}
		if r.Time.Before(to) {
			early++
		}
		repeated++
		old = max(old, from.Sub(before.end()))
	}
	if early > 0 || old > inFlight {
		p.t.Errorf("%d calls were repeated, %d of them before the kill, and one that had been answered %v before it", repeated, early, old)
	}
	p.t.Logf("%d calls in flight at the kill were repeated", repeated)
}

// kill ends all processes of a function, on this machine and of this emulator, with kill -9. It returns the moments
// before and after.
func (s *stack) kill(t *testing.T, function string) (from, to time.Time) {
	t.Helper()
	from = time.Now()
	killed := 0
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // of somebody else, or gone
		}
		vars := strings.Split(string(b), "\x00")
		if !has(vars, "AWS_LAMBDA_FUNCTION_NAME="+function) || !has(vars, "AWS_ENDPOINT_URL="+s.endpoint) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatalf("kill -9 %s: %v", filepath.Dir(file), err)
		}
		killed++
	}
	if killed == 0 {
		t.Skip("skipped: functions are no processes of this machine here, so none can be killed")
	}
	return from, time.Now()
}

func has(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}
