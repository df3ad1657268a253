package cloud

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"sluice/internal/core/run"
	"sluice/internal/providersim"
)

// outcome is what a slice says.
type outcome struct {
	Run, Outcome string
	WakeAt       time.Time
}

// The moment that a parked shard may go on, its slice is invoked twice at once, and by its machine as well: one works, and
// the others leave without effect.
func TestDoubleInvocationHasNoEffect(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const out, slow = 12 * time.Second, 4 * time.Second
	id, provider := named("double"), named("double")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify",
		Slow: 1000, SlowBy: providersim.Duration(slow), // so that the one that works does so for a while
		Outages: []providersim.Outage{{After: 10, For: providersim.Duration(out)}}})
	rows := people("double", 40)
	s.start(t, p.verifying(id, provider, 100, time.Second, rows))
	var v view
	eventually(t, soon, "the run is parked", func() bool { v = s.view(t, id); return v.Status == "parked" })
	time.Sleep(time.Until(v.WakeAt.Add(50 * time.Millisecond))) // the machine's own time is rounded up to a second

	both := s.slices(t, id, 2)
	done := 0
	for _, o := range both {
		switch {
		case o.Outcome == "done":
			done++
		case o.Outcome != "parked" || time.Until(o.WakeAt) > run.Lease+time.Second:
			t.Errorf("one that came second says %+v; it must come again when the first one's lease is over", o)
		}
	}
	if done > 1 { // none if the machine's was the first
		t.Errorf("both worked: %+v", both)
	}
	v = s.ended(t, id, "completed", soon+run.Lease)

	if v.Stats.Slices != 2 || v.Stats.Parks != 1 {
		t.Errorf("%d slices had an effect, of them %d parks; want 2 and 1", v.Stats.Slices, v.Stats.Parks)
	}
	if r := p.report(provider); r.Received != v.Stats.Dispatched || r.Completed != len(rows) || r.Distinct != len(rows) || r.Replayed != 0 {
		t.Errorf("the provider was asked %d times and answered %d, %d of them different; the run tells of %d calls", r.Received, r.Completed, r.Distinct, v.Stats.Dispatched)
	}
	p.verified(provider, s.export(t, id), rows)
}

// slices invokes the slice of a run's first shard n times at once, as the state machine does.
func (s *stack) slices(t *testing.T, id string, n int) []outcome {
	t.Helper()
	payload, _ := json.Marshal(map[string]any{"op": "slice", "run": id, "shard": 0, "slices": 1})
	said := make([]outcome, n)
	var wg sync.WaitGroup
	for i := range said {
		wg.Go(func() {
			out, err := s.lambda.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &s.runmap, Payload: payload})
			switch {
			case err != nil:
				t.Errorf("slice: %v", err)
			case out.FunctionError != nil:
				t.Errorf("slice: %s: %s", aws.ToString(out.FunctionError), out.Payload)
			default:
				if err := json.Unmarshal(out.Payload, &said[i]); err != nil {
					t.Errorf("slice: %v in %s", err, out.Payload)
				}
			}
		})
	}
	wg.Wait()
	return said
}
