package api

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
)

// exampleMap asks a provider, and then a person.
const exampleMap = `"map":"version: 1\nname: enrich-leads\nkey: email\nbudget: {calls: 100, cost: 5}\ncolumns:\n  - {name: company, call: acme.company, with: {of: \"${row.email}\"}}\n  - name: approved\n    event: {key: \"approve-${row.email}\", expires: 72h}\n",` +
	`"tools":"version: 1\nproviders: {acme: {url: \"https://acme.example\", limits: [{rate: 60, per: 1m}]}}\ntools: {acme.company: {path: /companies, query: {of: \"${input.of}\"}, input: {of: string}, cost: 0.25}}\n"`

// heldUntil is what the provider says: the clock of a bubble begins with the year 2000.
var heldUntil = time.Date(2000, 1, 1, 0, 20, 0, 0, time.UTC)

// examples answers requests, and holds each answer against the file of events/ that shows it, and against the documentation.
type examples struct {
	*world
	seen map[string]bool
}

func (x *examples) answers(name string, status int, method, target, body string) {
	x.t.Helper()
	got, have := x.ask(method, target, body)
	raw := sample(x.t, name)
	var want map[string]any
	if err := json.Unmarshal([]byte(raw), &want); err != nil {
		x.t.Fatalf("%s: %v", name, err)
	}
	shown := httptest.NewRecorder()
	shown.Header().Set("Content-Type", "application/json")
	shown.WriteHeader(status)
	_, _ = shown.WriteString(raw)
	documented(x.t, request(x.t, method, target, body), body, shown)
	for _, vary := range []string{"bill", "stats"} { // with each change of the engine; that they are there is checked by their form
		if (want[vary] == nil) != (have[vary] == nil) {
			x.t.Errorf("%s: %s is in one of them only", name, vary)
		}
		delete(want, vary)
		delete(have, vary)
	}
	if diff := cmp.Diff(want, have); got != status || diff != "" {
		x.t.Errorf("%s: status %d, want %d; the file (-), and what is answered (+):\n%s", name, got, status, diff)
	}
	x.seen[name] = true
}

// sample is a message of events/.
func sample(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../events/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// work brings the run as far as it comes.
func (x *examples) work(want run.Outcome) *run.Job {
	x.t.Helper()
	job, err := run.LoadJob(x.t.Context(), x.Store, "monday")
	if err == nil && job.Run.StartedAt.IsZero() {
		job, err = run.Plan(x.t.Context(), x.Store, "monday")
	}
	if err != nil {
		x.t.Fatal(err)
	}
	g := gatewayFunc(func(a call.Attempt) call.Answer {
		switch in := string(a.Input); {
		case strings.Contains(in, "bob") && time.Now().Before(heldUntil):
			return call.Answer{Outcome: call.Held, Dispatched: true, Status: 429, Until: heldUntil,
				Scope: "acme-9f86d081884c", Why: call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}}
		case strings.Contains(in, "eve"):
			return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{
				Code: "HTTP_422", Message: "acme answered 422 Unprocessable Entity", Status: 422, Attempt: 1, Dispatched: true}}
		}
		return call.Answer{Outcome: call.Result, Value: json.RawMessage(`{"name":"Example Ltd"}`), Dispatched: true, Status: 200, CostMicros: 250_000}
	})
	res, err := job.Slice(x.t.Context(), run.Ports{Store: x.Store, Gateway: g, Owner: "o"}, 0, run.Settings{Concurrency: 1})
	if err != nil || res.Outcome != want {
		x.t.Fatal(res, err)
	}
	return job
}

// The examples of events/ are what is answered, told as the story of a run: started, parked with a row of every kind, answered
// and completed; and what is refused on the way.
func TestTheExamplesAreWhatIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &examples{newWorld(t), map[string]bool{}}
		rows := `,"rows":[{"email":"ada@a.example"},{"email":"eve@e.example"},{"email":"bob@b.example"}]`
		x.answers("api-start-response", 202, "POST", "/runs", `{"run":"monday",`+exampleMap+rows+`}`)
		x.answers("api-error-conflict", 409, "POST", "/runs", `{"run":"monday",`+exampleMap+`,"rows":[{"email":"other"}]}`)
		x.answers("api-error-map", 400, "POST", "/runs", `{"map":"version: 1\ncolumns:\n  - {name: y, valeu: 1}\n","rows":[{"x":1}]}`)
		x.answers("api-upload-response", 201, "POST", "/uploads", `{"name":"leads.csv","size":12,"sha256":"`+strings.Repeat("0a", 32)+`"}`)
		x.work(run.Awaiting)
		x.answers("api-status-response", 200, "GET", "/runs/monday", "")
		x.answers("api-rows-response", 200, "GET", "/runs/monday/rows", "")
		x.answers("api-error-not-completed", 409, "GET", "/runs/monday/export", "")
		x.answers("api-answer-response", 200, "POST", "/answers", sample(t, "api-answer-request"))

		p := pacer.New(x.Store.Table, "one")
		if _, err := p.Acquire(t.Context(), "acme-9f86d081884c", pacer.Want{N: 3, Rules: []pacer.Rule{{Rate: 60, Per: time.Minute}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Report(t.Context(), "acme-9f86d081884c", pacer.Observation{Limited: true, Status: 429, Deadline: heldUntil}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		x.answers("api-providers-response", 200, "GET", "/providers", "")

		time.Sleep(time.Hour)
		x.work(run.Awaiting)
		if _, out := x.ask("POST", "/answers", `{"key":"approve-bob@b.example","value":false}`); out["taken"] != 1.0 {
			t.Fatal(out)
		}
		job := x.work(run.Done)
		if _, err := job.Finish(t.Context(), run.Ports{Store: x.Store}, run.Settings{}, nil); err != nil {
			t.Fatal(err)
		}
		x.answers("api-export-response", 200, "GET", "/runs/monday/export", "")
		x.answers("api-error-not-found", 404, "GET", "/runs/tuesday", "")

		files, err := os.ReadDir("../../events")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(f.Name(), ".json")
			if strings.HasPrefix(name, "api-") && !strings.HasSuffix(name, "-request") && !x.seen[name] {
				t.Errorf("events/%s is held against nothing", f.Name())
			}
		}
	})
}
