package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/steer"
	"sluice/internal/active"
	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
	"sluice/internal/objects"
	"sluice/internal/start"
)

type executions struct{ started, stopped, told []string }

func (e *executions) Start(_ context.Context, run string, execution int) error {
	e.started = append(e.started, machine.Name(run, execution))
	return nil
}

func (e *executions) Stop(_ context.Context, run string, execution int, _ string) error {
	e.stopped = append(e.stopped, machine.Name(run, execution))
	return nil
}

func (*executions) State(context.Context, string, int) (machine.State, string, error) {
	return machine.Running, "", nil
}

// Announce implements bus.Announcer.
func (e *executions) Announce(_ context.Context, told bus.Event) error {
	e.told = append(e.told, told.Type)
	return nil
}

type signer struct{}

func (signer) PresignPut(_ context.Context, name string, of blob.Expected, _ time.Duration) (objects.Signed, error) {
	h := http.Header{}
	if of.Size > 0 {
		h.Set("Content-Length", "9")
	}
	return objects.Signed{Method: "PUT", URL: "https://bucket/" + name + "?signature=hush", Header: h}, nil
}

func (signer) PresignGet(_ context.Context, name, filename string, _ time.Duration) (string, error) {
	return "https://bucket/" + name + "?as=" + filename + "&signature=hush", nil
}

// deployed is the function as it is wired, in memory.
func deployed(t *testing.T) (ask func(events.APIGatewayProxyRequest) (int, map[string]any), st *store.Store, e *executions) {
	st, e = &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &executions{}
	f := Function{api.New(api.Ports{Store: st, Starter: &start.Starter{Store: st, Executions: e, Accept: start.ForCloud(false)},
		Kicker: &steer.Steer{Store: st, Executions: e, Ending: &ending.Ending{Store: st, Announcer: e}}, Links: Links{Presigner: signer{}, Store: st}, Log: slog.New(slog.DiscardHandler)})}
	return func(in events.APIGatewayProxyRequest) (int, map[string]any) {
		t.Helper()
		res, err := f.Handle(t.Context(), in)
		var out map[string]any
		if err != nil || json.Unmarshal([]byte(res.Body), &out) != nil || res.Headers["Content-Type"] != "application/json" || res.IsBase64Encoded {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.StatusCode, out
	}, st, e
}

// The request as API Gateway sends it.
func TestAStartThroughAPIGateway(t *testing.T) {
	ask, st, e := deployed(t)
	raw, err := os.ReadFile("../../../events/api-start-request.json")
	if err != nil {
		t.Fatal(err)
	}
	var in events.APIGatewayProxyRequest
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	status, out := ask(in)
	id := start.KeyID("order-4711")
	if status != 202 || out["run"] != id || out["status"] != "staging" || e.started[0] != id {
		t.Fatalf("%d %v %v", status, out, e.started)
	}
	in.Body, in.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(in.Body)), true
	if status, again := ask(in); status != 202 || again["run"] != id {
		t.Errorf("in base64: %d %v", status, again)
	}
	in.Body = "%"
	if status, out := ask(in); status != 400 {
		t.Errorf("no base64: %d %v", status, out)
	}
	job, err := run.Plan(t.Context(), st, id)
	if err != nil || job.Run.Sealed.Rows != 2 {
		t.Errorf("%+v, %v", job, err)
	}
}

func TestQueriesAndPathsThroughAPIGateway(t *testing.T) {
	ask, _, _ := deployed(t)
	for _, in := range []events.APIGatewayProxyRequest{
		{HTTPMethod: "GET", Path: "/runs", QueryStringParameters: map[string]string{"limit": "x&y"}},
		{HTTPMethod: "GET", Path: "/runs/", MultiValueQueryStringParameters: map[string][]string{"limit": {"1", "2"}}},
	} {
		if status, out := ask(in); status != 400 || !strings.Contains(out["error"].(map[string]any)["message"].(string), "limit") {
			t.Errorf("%+v: %d %v", in, status, out)
		}
	}
	for path, want := range map[string]int{"/runs": 200, "": 404, "runs": 404, "/runs/%2e%2e": 404, "/runs/\xff": 404} {
		if status, out := ask(events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: path}); status != want {
			t.Errorf("%q: %d %v", path, status, out)
		}
	}
}

func TestFilesAreSignedURLsOfTheBucket(t *testing.T) {
	l := Links{Presigner: signer{}}
	up, err := l.Upload(t.Context(), "uploads/a/in.csv", blob.Expected{Size: 9}, time.Hour)
	want := api.Link{Method: "PUT", URL: "https://bucket/uploads/a/in.csv?signature=hush", Header: map[string]string{"Content-Length": "9"}}
	if diff := cmp.Diff(want, up); err != nil || diff != "" {
		t.Error(diff, err)
	}
	down, err := l.Table(t.Context(), &sheet.Run{ID: "r"}, "csv", time.Hour)
	if diff := cmp.Diff(api.Link{Method: "GET", URL: "https://bucket/runs/r/result.csv?as=r.csv&signature=hush"}, down); err != nil || diff != "" {
		t.Error(diff, err)
	}
}

// A cancellation stops the execution, makes the record true where nothing is at work, and is told; going on is a new
// execution, of a run that the reaper looks after again.
func TestX4CancelledAndTakenUpAgain(t *testing.T) {
	ask, st, e := deployed(t)
	post := func(path, body string) (int, any) {
		status, out := ask(events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: path, Body: body, Headers: map[string]string{"content-type": "application/json"}})
		return status, out["status"]
	}
	listed := func() int {
		n := 0
		for _, err := range active.All(t.Context(), st.Table) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	post("/runs", `{"run":"r","map":"version: 1\ncolumns: [{name: y, value: 1}]\n","rows":[{"x":1}]}`)
	for range 2 {
		if code, status := post("/runs/r/cancel", ""); code != 202 || status != "cancelled" || len(e.started) != 1 || e.stopped[0] != "r" || listed() != 0 {
			t.Errorf("%d %v %+v", code, status, e)
		}
	}
	if e.told[0] != "sluice.run.cancelled" {
		t.Errorf("told %v", e.told)
	}
	for range 2 {
		if code, status := post("/runs/r/resume", ""); code != 202 || status != "staging" || e.started[1] != "r--1" || listed() != 1 {
			t.Errorf("%d %v %+v", code, status, e)
		}
	}
}

// Whatever a handler writes arrives.
func TestBodiesThatAreNoTextAreEncoded(t *testing.T) {
	f := Function{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Vary", "a")
		w.Header().Add("Vary", "b")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append(b, 0xff))
	})}
	res, err := f.Handle(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/", Body: "x"})
	if err != nil || res.StatusCode != http.StatusTeapot || !res.IsBase64Encoded || res.Body != "eP8=" || res.Headers["Vary"] != "a, b" {
		t.Errorf("%+v %v", res, err)
	}
}

// A table that was not written when the run ended is written when it is asked for, once.
func TestTablesThatAreWrittenWhenTheyAreAskedFor(t *testing.T) {
	ask, st, _ := deployed(t)
	get := func(path string) string {
		t.Helper()
		status, out := ask(events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: path, QueryStringParameters: map[string]string{"format": "jsonl"}})
		link, _ := out["url"].(string)
		name, ok := strings.CutPrefix(link, "https://bucket/")
		if status != 200 || !ok || !strings.Contains(link, "?as=") {
			t.Fatalf("%d %v", status, out)
		}
		name, _, _ = strings.Cut(name, "?")
		object, err := st.Blobs.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	begin := func(id string) *run.Job {
		t.Helper()
		body := `{"run":"` + id + `","map":"version: 1\ncolumns: [{name: y, value: \"${row.x}\"}]\n","rows":[{"x":1}]}`
		ask(events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/runs", Body: body, Headers: map[string]string{"content-type": "application/json"}})
		job, err := run.Plan(t.Context(), st, id)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	job, ports := begin("done"), run.Ports{Store: st, Owner: "o"}
	if _, err := job.Slice(t.Context(), ports, 0, run.Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Finish(t.Context(), ports, run.Settings{}, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := get("/runs/done/export"); got != `{"x":1,"y":1}`+"\n" {
			t.Errorf("%q", got)
		}
	}
	begin("stopped")
	if err := run.Cancel(t.Context(), st, "stopped"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Settle(t.Context(), ports, run.Settings{}, "stopped"); err != nil {
		t.Fatal(err)
	}
	if got := get("/runs/stopped/export"); !strings.Contains(got, `"_status":"cancelled"`) {
		t.Errorf("%q", got)
	}
}
