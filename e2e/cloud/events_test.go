package cloud

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// asking is a map whose rows wait for answers under keys of their own.
func asking(run, event string) string {
	return fmt.Sprintf("version: 1\nname: asking\ncolumns:\n  - {name: ok, event: {key: \"%s/${row.x}\"%s}}\n", run, event)
}

var asked = []map[string]any{{"x": "a"}, {"x": "b"}}

// in waits until the shard of a run is in a state, and returns its execution.
func (s *stack) in(t *testing.T, run, state string) string {
	t.Helper()
	var shard []string
	eventually(t, soon, "the shard is in "+state, func() bool {
		if shard = s.shardExecutions(t, run); len(shard) != 1 {
			return false
		}
		events := s.history(t, shard[0])
		for i := len(events) - 1; i >= 0; i-- {
			if d := events[i].StateEnteredEventDetails; d != nil {
				return *d.Name == state
			}
		}
		return false
	})
	return shard[0]
}

// Rows wait for answers: the shard's machine sleeps on a token, an answer by the API wakes it, and so does one by the bus. A
// second answer changes nothing.
func TestAnswersWakeTheShard(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("asking")
	s.start(t, order{Run: run, Map: asking(run, ", expires: 3h"), Rows: asked})
	shard := s.in(t, run, "AwaitHour")

	var got struct{ Taken, Already int }
	for n, want := range [][2]int{{1, 0}, {0, 1}} {
		answer := map[string]any{"key": run + "/a", "value": map[string]any{"n": n}}
		status, said := s.call(t, http.MethodPost, "/answers", nil, answer, &got)
		if status/100 != 2 || got.Taken != want[0] || got.Already != want[1] {
			t.Fatalf("answer %d: status %d: %s", n, status, said)
		}
	}
	eventually(t, soon, "the first row has ended", func() bool { return s.view(t, run).Completed == 1 })
	s.in(t, run, "AwaitHour")

	s.answerByBus(t, run+"/b", "by the bus", 1)
	s.ended(t, run, "completed", soon)
	if got, want := s.export(t, run), "x,ok\na,\"{\"\"n\"\":0}\"\nb,by the bus\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	states := entered(s.history(t, shard))
	if states["Slice"] > 5 || states["AwaitHour"] < 2 || states["Park"] != 0 {
		t.Errorf("the shard's way: %v", states)
	}
}

// Nobody answers: the machine waits for a token no longer than until the event's end, in steps, and the row takes what its
// column says then.
func TestTheShardComesWhenAnEventEnds(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("silence")
	const expires = 50 * time.Second
	s.start(t, order{Run: run, Map: asking(run, ", expires: 50s, onTimeout: {value: nobody}"), Rows: asked})
	shard := s.in(t, run, "AwaitMoment")
	s.ended(t, run, "completed", expires+soon)
	if got := s.export(t, run); got != "x,ok\na,nobody\nb,nobody\n" {
		t.Errorf("got %q", got)
	}
	if states := entered(s.history(t, shard)); states["AwaitMoment"] != 1 || states["AwaitSeconds"] != 1 || states["Park"] != 1 || states["Slice"] != 4 {
		t.Errorf("the shard's way: %v", states)
	}
	if v := s.view(t, run); v.FinishedAt.Sub(v.CreatedAt) < expires {
		t.Errorf("it ended after %v", v.FinishedAt.Sub(v.CreatedAt))
	}
}

// A run that sleeps until an answer comes is cancelled at once: the machine is woken by its token.
func TestARunThatWaitsForAnswersIsCancelled(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("forlorn")
	s.start(t, order{Run: run, Map: asking(run, ", onTimeout: park"), Rows: asked})
	s.in(t, run, "AwaitHour")
	if status, said := s.call(t, http.MethodPost, "/runs/"+run+"/cancel", nil, nil, nil); status != http.StatusAccepted {
		t.Fatalf("status %d: %s", status, said)
	}
	eventually(t, soon, "the run is cancelled", func() bool { return s.view(t, run).Status == "cancelled" })
	if status, said := s.call(t, http.MethodPost, "/answers", nil, map[string]any{"key": run + "/a", "value": 1}, nil); status/100 != 4 {
		t.Errorf("an answer afterwards: status %d: %s", status, said)
	}
}
