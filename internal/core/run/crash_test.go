package run_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const eventful = `
version: 1
name: eventful
key: x
columns:
  - {name: up, value: "${row.x.upperAscii()}"}
  - {name: shared, call: a.get, with: {x: "${row.g}"}, result: "${result.x}"}
  - {name: kept, call: a.cached, with: {x: "${row.g}"}, result: "${result.x + '?'}"}
  - name: fall
    waterfall:
      - {call: a.get, with: {x: "${row.x}1"}, accept: "${result.x == 'r2!'}"}
      - {call: b.get, with: {x: "${row.x}2"}, result: "${result.x}"}
  - {name: last, call: b.get, with: {x: "${cells.shared}/${row.x}"}, result: "${result.x}", onError: {value: none}}
`

func eventfulRows() []string {
	lines := []string{"x,g"}
	for i := range 7 {
		lines = append(lines, fmt.Sprintf("r%d,g%d", i, i%3))
	}
	return append(lines, "r1,g9") // a duplicate
}

// eventfulProvider meets its callers with a failure, a short and a long hold, and one request that never works.
func eventfulProvider(a call.Attempt, nth int) call.Answer {
	input := string(a.Input)
	switch {
	case strings.Contains(input, `"r42"`) && nth == 0:
		return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Error: &call.Error{Code: "HTTP_503", Message: "busy"}}
	case strings.Contains(input, `"r32"`) && nth == 0:
		return heldFor(2 * time.Second)
	case strings.Contains(input, `/r5"`) && nth == 0:
		return heldFor(time.Minute)
	case strings.Contains(input, `/r6"`):
		return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
	}
	return echo(a, nth)
}

const eventfulTable = "x,g,up,shared,kept,fall,last\n" +
	"r0,g0,R0,g0,g0?,r02,g0/r0\n" +
	"r1,g1,R1,g1,g1?,r12,g1/r1\n" +
	"r2,g2,R2,g2,g2?,r22,g2/r2\n" +
	"r3,g0,R3,g0,g0?,r32,g0/r3\n" +
	"r4,g1,R4,g1,g1?,r42,g1/r4\n" +
	"r5,g2,R5,g2,g2?,r52,g2/r5\n" +
	"r6,g0,R6,g0,g0?,r62,none\n"

// completed counts, per request, how often the provider has finished it (a result, or a final refusal).
func completed(p *provider) map[string]int {
	counts := map[string]int{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asked {
		if a.done {
			counts[a.tool+a.input]++
		}
	}
	return counts
}

// toTheEnd starts the run, or starts it again, and works it to its end, as far as the store allows.
func (w *world) toTheEnd(text string, lines []string) (string, error) {
	job, err := w.tryStart("r1", text, lines...)
	if err != nil {
		return "", err
	}
	for {
		ports := w.ports()
		ports.Alive = func(string) bool { return false }
		res, err := job.Slice(w.t.Context(), ports, 0, w.settings)
		switch {
		case err != nil:
			return "", err
		case res.Outcome == run.Done:
			return w.tryExport(job)
		case res.Outcome == run.Parked:
			time.Sleep(time.Until(res.WakeAt))
		case res.Outcome == run.Awaiting:
			w.asleep(job, res)
		}
	}
}

// The store dies at every write there is, once with the write lost and once with the write done. Whatever moment it
// was, the run that goes on afterwards has the same table, and no call is made again but those that were in flight.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
			t.Run(fmt.Sprintf("concurrency=%d/kind=%d", concurrency, kind), func(t *testing.T) {
				crashEverywhere(t, kind, concurrency)
			})
		}
	}
}

func crashEverywhere(t *testing.T, kind tabletest.Kind, concurrency int) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			faulty := tabletest.NewFaulty(tbl)
			faulty.CrashAt(n, kind)
			w := newWorld(t, faulty)
			w.settings.Concurrency = concurrency
			w.provider.answer = eventfulProvider
			got, err := w.toTheEnd(eventful, eventfulRows())
			crashed = faulty.Crashed()
			if crashed && err == nil {
				t.Fatalf("write %d was lost and nobody said so", n)
			}
			faulty.Heal()
			w.countsAgree()
			if err != nil {
				got, err = w.toTheEnd(eventful, eventfulRows())
			}
			if err != nil || got != eventfulTable {
				t.Fatalf("crash at write %d: %v\ngot\n%s\nwant\n%s", n, err, got, eventfulTable)
			}
			again := 0
			for request, times := range completed(w.provider) {
				again += times - 1
				if times > 2 {
					t.Errorf("crash at write %d: %s completed %d times", n, request, times)
				}
			}
			// In every place one call may be in flight, and the row before it may have ended without being saved.
			if most := 2 * concurrency; again > most {
				t.Errorf("crash at write %d: %d calls were completed again, at most %d were not saved", n, again, most)
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}

// countsAgree holds what the record says of a run, whatever has become of its processes, against its rows.
func (w *world) countsAgree() {
	w.t.Helper()
	job, err := run.LoadJob(w.t.Context(), w.st, "r1")
	if errors.Is(err, sheet.ErrNoRun) || err == nil && job.Run.Status == sheet.Staging {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var counts sheet.Counts
	for v, err := range job.Rows(w.t.Context(), w.ports()) {
		switch {
		case err != nil:
			w.t.Fatal(err)
		case v.Status == run.StatusCompleted:
			counts.Completed++
		case v.Status == run.StatusFailed:
			counts.Failed++
		}
	}
	if counts != job.Run.Counts {
		w.t.Errorf("the record says %+v, the rows say %+v", job.Run.Counts, counts)
	}
}
