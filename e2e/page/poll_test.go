package page

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// waits runs a poller whose answers, and whose tab, are as told, and returns how long it would wait after each of them.
func waits(b *tab, visibility, load string, times int) []float64 {
	b.t.Helper()
	return eval[[]float64](b, fmt.Sprintf(`(async () => {
		const { Poller } = await import("./page/poll.js");
		const { Trouble } = await import("./page/api.js");
		const real = window.setTimeout, waits = [];
		Object.defineProperty(document, "visibilityState", { configurable: true, get: () => %s });
		let n = 0;
		const poller = new Poller({ load: async () => { n++; %s }, show() {}, pace: () => [2000, 10000] }, () => {});
		window.setTimeout = (_, ms) => waits.push(ms);
		try {
			for (let i = 0; i < %d; i++) await poller.refresh();
		} finally {
			window.setTimeout = real;
			poller.stop();
			delete document.visibilityState;
		}
		return waits;
	})()`, quoted(visibility), load, times))
}

func TestPollingBecomesCalmer(t *testing.T) {
	w := newWorld(t)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees(".empty", "no runs")
	for _, tt := range []struct {
		name, visibility, load string
		want                   []float64
	}{
		{"something new each time", "visible", `return { value: n, text: String(n) };`, []float64{2000, 2000, 2000, 2000, 2000, 2000}},
		{"nothing new", "visible", `return { value: 1, text: "same" };`, []float64{2000, 3000, 4500, 6750, 10000, 10000}},
		{"something new again", "visible", `return { value: n, text: String(n > 3) };`, []float64{2000, 3000, 4500, 2000, 3000, 4500}},
		{"nobody looks", "hidden", `return { value: n, text: String(n) };`, []float64{60000, 60000, 60000, 60000, 60000, 60000}},
		{"it must be asked for", "visible", `throw new Trouble("key", "");`, []float64{}},
		{"refused", "visible", `throw new Trouble("refused", "");`, []float64{30000, 30000, 30000, 30000, 30000, 30000}},
	} {
		if diff := cmp.Diff(tt.want, waits(b, tt.visibility, tt.load, 6)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	// Failures: each wait twice the last, a quarter more or less, so that many pages do not come back at one moment.
	got := waits(b, "visible", `throw new Trouble("away", "");`, 7)
	for i, base := range []float64{1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		if len(got) != 7 || got[i] < 0.75*base || got[i] > 1.25*base {
			t.Fatalf("after failures: %v", got)
		}
	}
	b.quiet(s.URL)
}
