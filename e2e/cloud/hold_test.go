package cloud

import (
	"testing"
	"time"

	"sluice/internal/providersim"
)

// A provider answers three calls and is out for 20 s then: the shard waits in Step Functions, and nobody else does.
func TestHoldParksAndNothingRunsMeanwhile(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const out = 20 * time.Second
	run, provider := named("hold"), named("hold")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify",
		Outages: []providersim.Outage{{After: 3, For: providersim.Duration(out)}}})
	rows := people("hold", 8)
	s.start(t, p.verifying(run, provider, 100, time.Second, rows))

	var v view
	eventually(t, soon, "the run is parked", func() bool { v = s.view(t, run); return v.Status == "parked" })
	if v.Completed != 3 || v.WakeAt.IsZero() {
		t.Errorf("while it is parked: %d rows completed, wakeAt %v; want 3, and a time", v.Completed, v.WakeAt)
	}
	shard := s.shardExecutions(t, run)
	if len(shard) != 1 {
		t.Fatalf("%d executions work on its shards, want 1", len(shard))
	}
	eventually(t, soon, "the execution is in its Wait state", func() bool {
		events := s.history(t, shard[0])
		last := events[len(events)-1].StateEnteredEventDetails
		return last != nil && *last.Name == "Park"
	})
	asked := p.report(provider).Received
	time.Sleep(time.Until(v.WakeAt.Add(-time.Second)))
	if still := p.report(provider).Received; still != asked {
		t.Errorf("the provider was asked %d times while the run was parked", still-asked)
	}
	s.ended(t, run, "completed", soon+out)

	s.quietWhileParked(t, run, shard[0], v.WakeAt)
	if r := p.report(provider); r.TooEarly != 0 || r.Completed != len(rows) || len(r.CompletedTwice) != 0 {
		t.Errorf("%d calls came too early, %d were answered, twice: %v", r.TooEarly, r.Completed, r.CompletedTwice)
	}
	p.verified(provider, s.export(t, run), rows)
}

// settled is how long after a Wait state begins a line that was written before it may be booked.
const settled = time.Second

// quietWhileParked checks that between the beginning and the end of the shard's wait no function logged anything of the
// run, and that both executions stood still.
func (s *stack) quietWhileParked(t *testing.T, run, shard string, wakeAt time.Time) {
	t.Helper()
	spans, meanwhile := waits(s.history(t, shard))
	if len(spans) != 1 || len(meanwhile) != 0 {
		t.Fatalf("waits %v, and meanwhile %v; want one, and nothing", spans, meanwhile)
	}
	from, to := spans[0][0], spans[0][1]
	if length := to.Sub(from); length < 15*time.Second || to.Before(wakeAt) {
		t.Errorf("it waited for %v until %v, before %v", length, to, wakeAt)
	}
	for _, e := range s.history(t, s.execution(run)) {
		if e.Timestamp.After(from) && e.Timestamp.Before(to) {
			t.Errorf("the run's execution went on while its shard waited: %s at %v", e.Type, e.Timestamp)
		}
	}
	for _, function := range []string{s.runmap, s.toolexec} {
		before, after := 0, 0
		for _, at := range s.lines(t, function, run, from.Add(-soon)) {
			switch {
			case at.After(from.Add(settled)) && at.Before(to):
				t.Errorf("%s was at work at %v; the wait was from %v to %v", function, at, from, to)
			case at.Before(to):
				before++
			default:
				after++
			}
		}
		if before == 0 || after == 0 {
			t.Errorf("%s logged %d lines before the wait and %d after it: is this its log?", function, before, after)
		}
	}
}
