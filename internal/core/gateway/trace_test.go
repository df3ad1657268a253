package gateway_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/memory"
)

// R14: once a call has met a 429, its retry leaves the times at which it came to each phase. First attempts leave nothing.
func TestR14RetriesLeaveATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{latency: 30 * time.Millisecond}
		p.status = func(n int) (int, http.Header) {
			if n == 0 {
				return 429, http.Header{"Retry-After": {"2"}}
			}
			return 200, nil
		}
		e := executor(t, memory.New(), "a", "limits: [{rate: 5, per: 1s}]", p)
		var traces []gateway.Trace
		e.Trace = func(tr gateway.Trace) { traces = append(traces, tr) }
		attempt := call.Attempt{Tool: "acme.get", RequestID: "secret-request", Fence: "secret-fence"}
		var a call.Answer
		ask := func(batch ...call.Attempt) {
			if err := e.Execute(t.Context(), batch, func(_ int, got call.Answer) { a = got }); err != nil {
				t.Fatal(err)
			}
		}
		if ask(attempt); a.Outcome != call.Held || len(traces) > 0 {
			t.Fatalf("%+v, %+v", a, traces)
		}
		attempt.Retry = true
		if ask(attempt); a.Outcome != call.Refused || len(traces) > 0 { // too early: nothing was dispatched
			t.Fatalf("%+v, %+v", a, traces)
		}
		time.Sleep(time.Until(a.NextFree)) // a little before its moment
		ask(attempt)
		want := gateway.Trace{Tool: "acme.get", Outcome: call.Result, Status: 200,
			Slept: 150 * time.Millisecond, Checked: 150 * time.Millisecond, Dispatched: 150 * time.Millisecond, Answered: 180 * time.Millisecond}
		if d := cmp.Diff([]gateway.Trace{want}, traces); d != "" {
			t.Error(d)
		}
	})
}
