package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// A run with a budget tells how much of it is spent, also after it was raised; one without costs no read for it.
func TestARunTellsItsBudgetAndWhatIsSpent(t *testing.T) {
	w := newWorld(t)
	budgeted := strings.Replace(callingMap, `version: 1\ncolumns`, `version: 1\nbudget: {calls: 2, cost: 1.5}\ncolumns`, 1)
	budgeted = strings.Replace(budgeted, "{path: /x}", "{path: /x, cost: 0.25}", 1)
	if status, out := w.ask("POST", "/runs", `{"run":"r",`+budgeted+`,"rows":[{"x":1},{"x":2},{"x":3}]}`); status != 202 {
		t.Fatal(status, out)
	}
	job, err := run.Plan(t.Context(), w.Store, "r")
	if err != nil {
		t.Fatal(err)
	}
	g := gatewayFunc(func(call.Attempt) call.Answer {
		return call.Answer{Outcome: call.Result, Value: json.RawMessage(`1`), Dispatched: true, Status: 200, CostMicros: 250_000}
	})
	res, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Gateway: g, Owner: "o"}, 0, run.Settings{Concurrency: 1})
	if err != nil || res.Outcome != run.Paused {
		t.Fatal(res, err)
	}
	amount := func(calls, micros float64) map[string]any {
		return map[string]any{"calls": calls, "costMicros": micros}
	}
	budget := map[string]any{"limit": amount(2, 1_500_000), "spent": amount(2, 500_000), "setAside": map[string]any{}}
	if _, out := w.ask("GET", "/runs/r", ""); out["interrupted"] != 1.0 || cmp.Diff(budget, out["budget"]) != "" {
		t.Errorf("%v interrupted, budget %v", out["interrupted"], out["budget"])
	}
	if status, out := w.ask("POST", "/runs/r/resume", `{"budget":{"calls":5}}`); status != 202 {
		t.Fatal(status, out)
	}
	budget["limit"] = amount(5, 1_500_000)
	if _, out := w.ask("GET", "/runs/r", ""); cmp.Diff(budget, out["budget"]) != "" {
		t.Errorf("after it was raised: %v", out["budget"])
	}
	if status, out := w.ask("POST", "/runs", `{"run":"plain",`+callingMap+`,"rows":[{"x":1}]}`); status != 202 {
		t.Fatal(status, out)
	}
	if job, err = run.Plan(t.Context(), w.Store, "plain"); err != nil {
		t.Fatal(err)
	}
	g = func(call.Attempt) call.Answer {
		return call.Answer{Outcome: call.Held, Until: time.Now().Add(time.Hour)}
	}
	if _, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Gateway: g, Owner: "o"}, 0, run.Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, out := w.ask("GET", "/runs/plain", ""); out["budget"] != nil {
		t.Errorf("a run without a budget: %v", out["budget"])
	}
	looks := table.Meter(w.Store.Table)
	w.Store = &store.Store{Table: looks, Blobs: w.Store.Blobs}
	reads := func(id string) int64 {
		before := looks.Usage()
		w.ask("GET", "/runs/"+id, "")
		return looks.Usage().Sub(before).Operations
	}
	if with, without := reads("r"), reads("plain"); with != 5 || without != 4 {
		t.Errorf("a look takes %d reads, and %d without a budget; want 5 and 4", with, without)
	}
}
