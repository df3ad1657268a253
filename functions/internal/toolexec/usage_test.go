package toolexec

import (
	"testing"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

// What an invocation asks of the store travels back with its answers, and the gateway sums it up.
func TestUseOfTheStoreTravelsWithTheAnswers(t *testing.T) {
	c := gatewaytest.Catalogue(t)
	h := handler(c, &gatewaytest.Provider{})
	meter := table.Meter(memory.New())
	h.Pacer, h.Usage = pacer.New(meter, "toolexec"), meter.Usage
	g := over(t, h, c, 0)
	for range 2 { // one invocation each
		if err := g.Execute(t.Context(), attempts(5, "acme.get"), func(int, call.Answer) {}); err != nil {
			t.Fatal(err)
		}
	}
	if used, want := g.Used(), meter.Usage(); used != want || want.WriteUnits == 0 {
		t.Errorf("used %+v, want %+v", used, want)
	}
}
