package run_test

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// Helpers that the stories of the behaviour tests share.

const callA = `
version: 1
name: one
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
`

// byProvider calls the provider that the row names, and only that.
const byProvider = `
version: 1
name: both
columns:
  - {name: fromA, call: a.get, when: "${row.p == 'a'}", with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: fromB, call: b.get, when: "${row.p == 'b'}", with: {x: "${row.x}"}, result: "${result.x}"}
`

// scripted answers the calls of a tool whose input contains a text by a list, one after another, then like echo. The
// scripted answers take a while: calls that were sent together have been answered before.
func scripted(tool, contains string, answers ...func() call.Answer) func(call.Attempt, int) call.Answer {
	return func(a call.Attempt, nth int) call.Answer {
		if a.Tool == tool && strings.Contains(string(a.Input), contains) && nth < len(answers) {
			time.Sleep(scriptedTakes)
			return answers[nth]()
		}
		return echo(a, nth)
	}
}

const scriptedTakes = 5 * time.Millisecond

func holds(d time.Duration) func() call.Answer { return func() call.Answer { return heldFor(d) } }

// broken is a failure that may pass, after the request had left.
func broken(call.Attempt, int) call.Answer {
	return call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Error: &call.Error{Code: "HTTP_503", Message: "try later"}}
}

// newFaultyWorld is a world whose store fails on demand.
func newFaultyWorld(t *testing.T, tbl table.Table) (*world, *tabletest.Faulty) {
	f := tabletest.NewFaulty(tbl)
	w := newWorld(t, f)
	w.provider.answer = echo
	return w, f
}

// behind is the same store, seen past the faults.
func behind(w *world, tbl table.Table) *store.Store {
	return &store.Store{Table: tbl, Blobs: w.st.Blobs}
}

// startOf plans a run under a catalogue of its own.
func (w *world) startOf(id, mapText, toolsText string, lines ...string) (*run.Job, error) {
	return run.Start(w.t.Context(), w.st, run.Request{
		ID:        id,
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(toolsText)},
		InputName: "in.csv",
		Input:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
		Format:    intake.Options{Format: "csv"},
	})
}

// reload is the run as a fresh process finds it.
func (w *world) reload(job *run.Job) *run.Job {
	w.t.Helper()
	fresh, err := run.LoadJob(w.t.Context(), w.st, job.Run.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return fresh
}

// parked works one slice that must park, and returns for how long.
func (w *world) parked(job *run.Job) time.Duration {
	w.t.Helper()
	res := w.slice(job)
	if res.Outcome != run.Parked {
		w.t.Fatalf("the slice ended %s, want parked", res.Outcome)
	}
	return time.Until(res.WakeAt)
}

// failing works one slice that must fail.
func (w *world) failing(ctx context.Context, job *run.Job) error {
	w.t.Helper()
	res, err := job.Slice(ctx, w.ports(), 0, w.settings)
	if err == nil {
		w.t.Fatalf("the slice ended %s, want a failure", res.Outcome)
	}
	return err
}

// times is when a tool was asked with an input that contains the text, since the world began.
func (p *provider) times(tool, contains string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at []time.Duration
	for _, a := range p.asked {
		if a.tool == tool && strings.Contains(a.input, contains) {
			at = append(at, a.at)
		}
	}
	return at
}

// log is all that the provider was asked so far.
func (p *provider) log() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func seconds(n ...float64) []time.Duration {
	out := make([]time.Duration, len(n))
	for i, s := range n {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

// near compares moments to within a few milliseconds.
func near(got, want []time.Duration) bool {
	return slices.EqualFunc(got, want, func(a, b time.Duration) bool { return (a - b).Abs() < 20*time.Millisecond })
}

// statuses is how the rows stand, in order.
func (w *world) statuses(job *run.Job, st *store.Store) []string {
	w.t.Helper()
	var out []string
	for v, err := range job.Rows(context.Background(), run.Ports{Store: st}) {
		if err != nil {
			w.t.Error(err)
			return out
		}
		out = append(out, v.Status)
	}
	return out
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// items lists the keys of a partition that begin with a prefix.
func items(t *testing.T, tbl table.Table, part, prefix string) []table.Item {
	t.Helper()
	var out []table.Item
	for item, err := range tbl.Query(context.Background(), table.Prefix(part, prefix)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item)
	}
	return out
}

func isJournal(k table.Key) bool {
	return strings.Contains(k.Part, "/shard/") && strings.HasPrefix(k.Sort, "j/")
}
func isPage(k table.Key) bool       { return strings.HasSuffix(k.Part, "/out") }
func isCheckpoint(k table.Key) bool { return k.Sort == "checkpoint" }
func isReceipt(k table.Key) bool    { return strings.HasPrefix(k.Part, "receipt/") }

// puts strikes the writes of such keys.
func puts(is func(table.Key) bool) func(tabletest.Op, table.Key) bool {
	return func(op tabletest.Op, k table.Key) bool { return op == tabletest.OpPut && is(k) }
}

func itoa(i int) string { return strconv.Itoa(i) }
