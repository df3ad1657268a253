package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sluice/functions/internal/machine"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
	"sluice/internal/objects"
	"sluice/internal/start"
)

type executions struct {
	started []string
	down    error
}

func (e *executions) Start(_ context.Context, run string, restarts int) error {
	if e.down == nil {
		e.started = append(e.started, machine.Name(run, restarts))
	}
	return e.down
}

func (e *executions) State(context.Context, string, int) (machine.State, string, error) {
	return machine.Running, "", nil
}

type signer struct{}

func (signer) PresignPut(_ context.Context, name string, size int64, _ time.Duration) (objects.Signed, error) {
	h := http.Header{}
	if size > 0 {
		h.Set("Content-Length", "9")
	}
	return objects.Signed{Method: "PUT", URL: "https://bucket/" + name + "?signature=hush", Header: h}, nil
}

func (signer) PresignGet(_ context.Context, name, filename string, _ time.Duration) (string, error) {
	return "https://bucket/" + name + "?as=" + filename + "&signature=hush", nil
}

type world struct {
	*Handler
	t    *testing.T
	log  strings.Builder
	exec *executions
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, exec: &executions{}}
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	w.Handler = &Handler{Store: st, Starter: &start.Starter{Store: st, Executions: w.exec, Accept: start.ForCloud}, Presigner: signer{},
		Log: slog.New(slog.NewJSONHandler(&w.log, nil))}
	return w
}

type reqOption func(*events.APIGatewayProxyRequest)

func header(name, value string) reqOption {
	return func(r *events.APIGatewayProxyRequest) { r.Headers = map[string]string{name: value} }
}

func query(name, value string) reqOption {
	return func(r *events.APIGatewayProxyRequest) { r.QueryStringParameters = map[string]string{name: value} }
}

func (w *world) ask(method, path, body string, opts ...reqOption) (int, map[string]any) {
	w.t.Helper()
	in := events.APIGatewayProxyRequest{HTTPMethod: method, Path: path, Body: body}
	for _, o := range opts {
		o(&in)
	}
	return w.send(in)
}

func (w *world) send(in events.APIGatewayProxyRequest) (int, map[string]any) {
	w.t.Helper()
	res, err := w.Handle(w.t.Context(), in)
	if err != nil || res.Headers["Content-Type"] != "application/json" {
		w.t.Fatalf("%+v, %v", res, err)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(res.Body), &out); err != nil {
		w.t.Fatalf("%s: %v", res.Body, err)
	}
	return res.StatusCode, out
}

func (w *world) refused(status int, code, text, method, path, body string, opts ...reqOption) {
	w.t.Helper()
	got, out := w.ask(method, path, body, opts...)
	detail, _ := out["error"].(map[string]any)
	message, _ := detail["message"].(string)
	if got != status || detail["code"] != code || !strings.Contains(message, text) || len(out) != 1 || len(detail) != 2 {
		w.t.Errorf("%s %s %.120s: %d %v; want %d %s, %q", method, path, body, got, out, status, code, text)
	}
}

const goodMap = `"map":"version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\n"`

// The request as API Gateway sends it.
func TestX1AStartRepeatedIsOneRun(t *testing.T) {
	w := newWorld(t)
	raw, err := os.ReadFile("../../../events/api-start-request.json")
	if err != nil {
		t.Fatal(err)
	}
	var in events.APIGatewayProxyRequest
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	status, first := w.send(in)
	if status != 202 || first["status"] != "staging" {
		t.Fatalf("%d %v", status, first)
	}
	if _, again := w.send(in); again["run"] != first["run"] {
		t.Errorf("%v, then %v", first, again)
	}
	id, _ := first["run"].(string)
	if id != start.KeyID("order-4711") || w.exec.started[0] != id {
		t.Errorf("%s, %v", id, w.exec.started)
	}
	in.Body = strings.Replace(in.Body, "ada", "eve", 1)
	if status, out := w.send(in); status != 409 || out["error"].(map[string]any)["code"] != "CONFLICT" {
		t.Errorf("other rows: %d %v", status, out)
	}
	// The first rows are untouched, and the run can be planned from them.
	job, err := run.Plan(t.Context(), w.Store, id)
	if err != nil || job.Run.Sealed.Rows != 2 || job.Run.Status != sheet.Running {
		t.Fatalf("%+v, %v", job, err)
	}
	in.Body = strings.Replace(in.Body, "eve", "ada", 1)
	if status, out := w.send(in); status != 202 || out["status"] != "running" {
		t.Errorf("a start of a run that is at work: %d %v", status, out)
	}
}

// Whatever was cut off, the same start repeated completes it.
func TestX1AStartThatWasCutOffIsCompleted(t *testing.T) {
	w := newWorld(t)
	w.exec.down = errors.New("no answer from host.internal")
	body := `{"run":"r",` + goodMap + `,"rows":[{"x":1}]}`
	w.refused(500, "INTERNAL", "trying again is harmless", "POST", "/runs", body)
	if strings.Contains(w.log.String(), "version: 1") || !strings.Contains(w.log.String(), "no answer") {
		t.Error(w.log.String())
	}
	w.exec.down = nil
	if status, out := w.ask("POST", "/runs", body); status != 202 || out["run"] != "r" || len(w.exec.started) != 1 {
		t.Errorf("%d %v %v", status, out, w.exec.started)
	}
}

func TestStartsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	bad := func(text, fields string, opts ...reqOption) {
		t.Helper()
		w.refused(400, "BAD_REQUEST", text, "POST", "/runs", "{"+fields+"}", opts...)
	}
	bad("`map` is missing", `"rows":[{}]`)
	bad("either `rows` or `upload`", goodMap)
	bad("either `rows` or `upload`", goodMap+`,"rows":[{"x":1}],"upload":"uploads/a/b.csv"`)
	bad("`rows` is empty", goodMap+`,"rows":[]`)
	bad("row 2 is not an object", goodMap+`,"rows":[{"x":1},[2]]`)
	bad("for uploads", goodMap+`,"rows":[{"x":1}],"format":"csv"`)
	bad(`unknown field "row"`, goodMap+`,"row":[{"x":1}]`)
	bad("no two `-`", goodMap+`,"rows":[{"x":1}],"run":"a--1"`)
	bad("letters, digits", goodMap+`,"rows":[{"x":1}],"run":"a/b"`)
	bad("at most 72", goodMap+`,"rows":[{"x":1}],"run":"`+strings.Repeat("a", 73)+`"`)
	bad("`limit`", goodMap+`,"rows":[{"x":1}],"limit":-1`)
	bad("`concurrency`", goodMap+`,"rows":[{"x":1}],"concurrency":1001`)
	bad("map.yaml:", `"map":"version: 1\ncolumns: 7\n","rows":[{"x":1}]`)
	bad("timeout of 5m0s", `"map":"version: 1\ncolumns:\n  - {name: y, call: a.get, with: {x: 1}}\n","rows":[{"x":1}],`+
		`"tools":"version: 1\nproviders: {a: {url: \"https://a.example\"}}\ntools: {a.get: {path: /x, timeout: 5m}}\n"`)
	bad("takes its secret from the environment", `"map":"version: 1\ncolumns:\n  - {name: y, call: a.get, with: {x: 1}}\n","rows":[{"x":1}],`+
		`"tools":"version: 1\nproviders: {a: {url: \"https://a.example\", auth: {header: X-Key, secret: \"env:AWS_SECRET_ACCESS_KEY\"}}}\ntools: {a.get: {path: /x}}\n"`)
	bad("either `run` or an Idempotency-Key", goodMap+`,"rows":[{"x":1}],"run":"a"`, header("idempotency-KEY", "k"))
	bad("too long", goodMap+`,"rows":[{"x":1}]`, header("Idempotency-Key", strings.Repeat("k", 256)))
	for _, key := range []string{"runs/other/result.csv", "uploads/../runs/x", "uploads/", "/uploads/a", "uploads/a/../../b", "https://x"} {
		bad("`upload` must be a key", goodMap+`,"upload":"`+key+`"`)
	}
	bad("`format` is", goodMap+`,"upload":"uploads/a/b","format":"xls"`)
	bad("`delimiter`", goodMap+`,"upload":"uploads/a/b","delimiter":";;"`)
	w.refused(400, "BAD_REQUEST", "it is empty", "POST", "/runs", "")
	if len(w.exec.started) != 0 {
		t.Errorf("started %v", w.exec.started)
	}
	for r, err := range sheet.List(t.Context(), w.Store) {
		t.Errorf("a run was left: %+v, %v", r, err)
	}
}

func TestARunOfAnUpload(t *testing.T) {
	w := newWorld(t)
	status, up := w.ask("POST", "/uploads", `{"name":"leads.csv","size":9}`)
	key, _ := up["key"].(string)
	if status != 201 || up["method"] != "PUT" || !strings.HasPrefix(key, "uploads/") || !strings.HasSuffix(key, "/leads.csv") ||
		up["headers"].(map[string]any)["Content-Length"] != "9" {
		t.Fatalf("%d %v", status, up)
	}
	if err := w.Store.Blobs.Put(t.Context(), key, strings.NewReader("x;z\n1;2\n")); err != nil {
		t.Fatal(err)
	}
	body := base64.StdEncoding.EncodeToString([]byte(`{"run":"r",` + goodMap + `,"upload":"` + key + `","delimiter":";"}`))
	status, out := w.ask("POST", "/runs/", body, func(r *events.APIGatewayProxyRequest) { r.IsBase64Encoded = true })
	if status != 202 {
		t.Fatalf("%d %v", status, out)
	}
	job, err := run.Plan(t.Context(), w.Store, "r")
	if err != nil || job.Run.Sealed.Rows != 1 || job.Run.Input != "leads.csv" {
		t.Errorf("%+v, %v", job, err)
	}
	for _, name := range []string{"a/b.csv", "..", "ä.csv"} {
		w.refused(400, "BAD_REQUEST", "`name`", "POST", "/uploads", `{"name":"`+name+`"}`)
	}
	if strings.Contains(w.log.String(), "hush") {
		t.Error("a signed URL was logged")
	}
}

func TestShowingRuns(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		w.ask("POST", "/runs", `{"run":"`+id+`",`+goodMap+`,"rows":[{"x":1},{"x":2}]}`)
	}
	job, err := run.Plan(t.Context(), w.Store, "b")
	if err != nil {
		t.Fatal(err)
	}
	w.refused(409, "NOT_COMPLETED", "the run is running", "GET", "/runs/b/export", "")
	if _, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Owner: "o"}, 0, run.Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, out := w.ask("GET", "/runs/b", ""); out["status"] != "running" || out["completed"] != 2.0 || out["rows"] != 2.0 {
		t.Errorf("%v", out)
	}
	if _, err := job.Finish(t.Context(), run.Ports{Store: w.Store}, run.Settings{}, nil); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("GET", "/runs/b/export", ""); status != 200 || out["url"] != "https://bucket/runs/b/result.csv?as=b.csv&signature=hush" {
		t.Errorf("%d %v", status, out)
	}
	status, out := w.ask("GET", "/runs", "", query("limit", "2"))
	runs, _ := out["runs"].([]any)
	if status != 200 || len(runs) != 2 || runs[0].(map[string]any)["run"] != "c" || out["next"] != "b" {
		t.Errorf("%d %v", status, out)
	}
	if _, out = w.ask("GET", "/runs", "", query("before", "b")); len(out["runs"].([]any)) != 1 || out["next"] != nil {
		t.Errorf("%v", out)
	}
	w.refused(400, "BAD_REQUEST", "`limit`", "GET", "/runs", "", query("limit", "0"))
	w.refused(400, "BAD_REQUEST", "only `before` and `limit`", "GET", "/runs", "", query("sort", "x"))
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/nobody", "")
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/\xff/export", "")
	w.refused(404, "NOT_FOUND", "nothing here", "GET", "/else", "")
	w.refused(404, "NOT_FOUND", "nothing here", "GET", "/runs/a/b/c", "")
	w.refused(405, "METHOD_NOT_ALLOWED", "method", "DELETE", "/runs/a", "")
}

// A run that failed says why, and has no table.
func TestH8AFailedRunIsNotExported(t *testing.T) {
	w := newWorld(t)
	w.ask("POST", "/runs", `{"run":"r",`+goodMap+`,"rows":[{"x":1}]}`)
	rec, err := sheet.Load(t.Context(), w.Store, "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&run.Job{Run: rec}).Fail(t.Context(), w.Store, errors.New("page 3 is missing")); err != nil {
		t.Fatal(err)
	}
	w.refused(409, "NOT_COMPLETED", "page 3 is missing", "GET", "/runs/r/export", "")
	if _, out := w.ask("GET", "/runs/r", ""); out["status"] != "failed" || out["error"] != "page 3 is missing" {
		t.Errorf("%v", out)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("POST", "/runs", `{"map":"version: 1","rows":[{"x":1}]}`)
	f.Add("GET", "/runs/x/export", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
		h := &Handler{Store: st, Starter: &start.Starter{Store: st, Executions: &executions{}, Accept: start.ForCloud}, Presigner: signer{}, Log: slog.New(slog.DiscardHandler)}
		res, err := h.Handle(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: method, Path: path, Body: body})
		if err != nil || res.StatusCode >= 500 || !json.Valid([]byte(res.Body)) {
			t.Errorf("%d %s %v", res.StatusCode, res.Body, err)
		}
	})
}
