package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/start"
)

func TestX1AStartRepeatedIsOneRun(t *testing.T) {
	w := newWorld(t)
	key := header("Idempotency-Key", "order-4711")
	body := `{` + goodMap + `,"rows":[{"x":"ada"},{"x":"grace"}]}`
	status, first := w.ask("POST", "/runs", body, key)
	if status != 202 || first["status"] != "staging" {
		t.Fatalf("%d %v", status, first)
	}
	if _, again := w.ask("POST", "/runs", body, key); again["run"] != first["run"] {
		t.Errorf("%v, then %v", first, again)
	}
	id, _ := first["run"].(string)
	if id != start.KeyID("order-4711") || w.started[0] != id+"--0" {
		t.Errorf("%s, %v", id, w.started)
	}
	w.refused(409, "CONFLICT", "with another map", "POST", "/runs", strings.Replace(body, "ada", "eve", 1), key)
	// The first rows are untouched, and the run can be planned from them.
	job, err := run.Plan(t.Context(), w.Store, id)
	if err != nil || job.Run.Sealed.Rows != 2 || job.Run.Status != sheet.Running {
		t.Fatalf("%+v, %v", job, err)
	}
	if status, out := w.ask("POST", "/runs", body, key); status != 202 || out["status"] != "running" {
		t.Errorf("a start of a run that is at work: %d %v", status, out)
	}
}

// Whatever was cut off, the same start repeated completes it.
func TestX1AStartThatWasCutOffIsCompleted(t *testing.T) {
	w := newWorld(t)
	w.down = errors.New("no answer from host.internal")
	body := `{"run":"r",` + goodMap + `,"rows":[{"x":1}]}`
	told := w.refused(500, "INTERNAL", "trying again is harmless; the log has more under request 4711", "POST", "/runs", body)
	if strings.Contains(told["message"].(string), "host.internal") {
		t.Errorf("what is inside was told: %v", told)
	}
	if strings.Contains(w.log.String(), "version: 1") || !strings.Contains(w.log.String(), "no answer") {
		t.Error(w.log.String())
	}
	w.down = nil
	if status, out := w.ask("POST", "/runs", body); status != 202 || out["run"] != "r" || len(w.started) != 1 {
		t.Errorf("%d %v %v", status, out, w.started)
	}
}

func TestStartsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	bad := func(text, fields string, opts ...option) map[string]any {
		t.Helper()
		return w.refused(400, "BAD_REQUEST", text, "POST", "/runs", "{"+fields+"}", opts...)
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
	w.refused(413, "TOO_LARGE", "as uploads", "POST", "/runs", `{"map":"`+strings.Repeat("x", MaxBody)+`"}`)
	w.refused(415, "UNSUPPORTED_MEDIA_TYPE", "application/json", "POST", "/runs", "map=1", header("Content-Type", "application/x-www-form-urlencoded"))
	if len(w.started) != 0 {
		t.Errorf("started %v", w.started)
	}
	for r, err := range sheet.List(t.Context(), w.Store) {
		t.Errorf("a run was left: %+v, %v", r, err)
	}
}

// Every mistake of a map is told at once, each with its place, for programs too.
func TestMistakesOfAMapAreToldWithTheirPlaces(t *testing.T) {
	w := newWorld(t)
	detail := w.refused(400, "BAD_REQUEST", "leads.yaml:", "POST", "/runs", `{"map":"version: 1\ncolumns: 7\nkeys: x\n","mapName":"leads.yaml","rows":[{"x":1}]}`)
	problems, _ := detail["problems"].([]any)
	if len(problems) < 2 {
		t.Fatalf("%v", detail)
	}
	lines := map[any]bool{}
	for _, p := range problems {
		if p.(map[string]any)["file"] != "leads.yaml" {
			t.Errorf("%v", p)
		}
		lines[p.(map[string]any)["line"]] = true
	}
	if !lines[2.0] || !lines[3.0] {
		t.Errorf("%v", problems)
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
	status, out := w.ask("POST", "/runs/", `{"run":"r",`+goodMap+`,"upload":"`+key+`","delimiter":";"}`)
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
	w.refused(400, "BAD_REQUEST", "`size`", "POST", "/uploads", `{"size":-1}`)
	for _, digest := range []string{"abc", strings.Repeat("A", 64), strings.Repeat("../", 21) + "a"} {
		w.refused(400, "BAD_REQUEST", "`sha256`", "POST", "/uploads", `{"sha256":"`+digest+`"}`)
	}
	digest := strings.Repeat("0a", 32)
	if _, out := w.ask("POST", "/uploads", `{"name":"in.csv","sha256":"`+digest+`"}`); out["key"] != "uploads/sha256-"+digest+"/in.csv" {
		t.Errorf("%v", out)
	}
	// What was put there in place of the announced file does not become a run.
	if err := w.Store.Blobs.Put(t.Context(), "uploads/sha256-"+digest+"/in.csv", strings.NewReader("x\n1\n")); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("POST", "/runs", `{"run":"changed",`+goodMap+`,"upload":"uploads/sha256-`+digest+`/in.csv"}`); status != 202 {
		t.Fatal(status, out)
	}
	var refused *run.RefusedError
	if _, err := run.Plan(t.Context(), w.Store, "changed"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "and not "+digest) {
		t.Errorf("another file was planned: %v", err)
	}
	if status, out := w.ask("POST", "/uploads", ""); status != 201 {
		t.Errorf("%d %v", status, out)
	}
	if strings.Contains(w.log.String(), "hush") {
		t.Error("a signed URL was logged")
	}
}

func TestShowingRuns(t *testing.T) {
	w := newWorld(t)
	w.start("a", 2)
	job := w.start("b", 2)
	w.ask("POST", "/runs", `{"run":"c",`+goodMap+`,"rows":[{"x":1}]}`)
	w.refused(409, "NOT_COMPLETED", "the run is running", "GET", "/runs/b/export", "")
	w.refused(409, "NOT_COMPLETED", "the run is staging", "GET", "/runs/c/export", "")
	w.work(job)
	if _, out := w.ask("GET", "/runs/b", ""); out["status"] != "completed" || out["completed"] != 2.0 || out["rows"] != 2.0 || out["bill"] == nil {
		t.Errorf("%v", out)
	}
	if status, out := w.ask("GET", "/runs/b/export", ""); status != 200 || out["url"] != "https://bucket/b.csv?signature=hush" {
		t.Errorf("%d %v", status, out)
	}
	if status, out := w.ask("GET", "/runs/b/export?format=jsonl", ""); status != 200 || out["url"] != "https://bucket/b.jsonl?signature=hush" {
		t.Errorf("%d %v", status, out)
	}
	w.refused(400, "BAD_REQUEST", "`format`", "GET", "/runs/b/export?format=xls", "")
	status, out := w.ask("GET", "/runs?limit=2", "")
	runs, _ := out["runs"].([]any)
	if status != 200 || len(runs) != 2 || runs[0].(map[string]any)["run"] != "c" || out["next"] != "b" {
		t.Errorf("%d %v", status, out)
	}
	if _, out = w.ask("GET", "/runs?before=b", ""); len(out["runs"].([]any)) != 1 || out["next"] != nil {
		t.Errorf("%v", out)
	}
	for _, limit := range []string{"0", "201", "-1", "many"} {
		w.refused(400, "BAD_REQUEST", "`limit`", "GET", "/runs?limit="+limit, "")
	}
	w.refused(400, "BAD_REQUEST", `"sort" is not known here; known: before, limit`, "GET", "/runs?sort=x", "")
	w.refused(400, "BAD_REQUEST", "given 2 times", "GET", "/runs?limit=1&limit=2", "")
	w.refused(400, "BAD_REQUEST", "cannot be read", "GET", "/runs?a;b", "")
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/nobody", "")
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/%ff/export", "")
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/a%2Fb", "")
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "/", "")
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "/else", "")
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "/runs/a/b/c", "")
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "/runs/../runs", "")
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "//runs", "")
	w.refused(405, "METHOD_NOT_ALLOWED", "DELETE is not possible here; possible: GET", "DELETE", "/runs/a", "")
}

// A run that failed says why, and has no table.
func TestH8AFailedRunIsNotExported(t *testing.T) {
	w := newWorld(t)
	job := w.start("r", 1)
	if err := job.Fail(t.Context(), w.Store, errors.New("page 3 is missing")); err != nil {
		t.Fatal(err)
	}
	w.refused(409, "NOT_COMPLETED", "page 3 is missing", "GET", "/runs/r/export", "")
	if _, out := w.ask("GET", "/runs/r", ""); out["status"] != "failed" || out["error"] != "page 3 is missing" {
		t.Errorf("%v", out)
	}
}

func TestStopAndGoOn(t *testing.T) {
	w := newWorld(t)
	job := w.start("r", 2)
	if status, out := w.ask("POST", "/runs/r/pause", `{"reason":"lunch"}`); status != 202 || out["run"] != "r" {
		t.Fatal(status, out)
	}
	if _, out := w.ask("GET", "/runs/r", ""); out["asked"] != "pause" {
		t.Errorf("%v", out)
	}
	settled, err := run.Settle(t.Context(), run.Ports{Store: w.Store, Owner: "o"}, run.Settings{}, "r")
	if err != nil || settled.Status != sheet.Paused {
		t.Fatal(settled, err)
	}
	if _, out := w.ask("GET", "/runs/r", ""); out["status"] != "paused" || out["asked"] != nil || out["pause"].(map[string]any)["reason"] != "lunch" {
		t.Errorf("%v", out)
	}
	if status, out := w.ask("POST", "/runs/r/resume", `{"budget":{"calls":10,"cost":0.5}}`); status != 202 || out["status"] != "running" {
		t.Errorf("%d %v", status, out)
	}
	asked, err := sheet.LoadControl(t.Context(), w.Store, "r")
	if err != nil || asked.Raised != (sheet.Budget{Calls: 10, CostMicros: 500_000}) {
		t.Errorf("%+v %v", asked, err)
	}
	if status, _ := w.ask("POST", "/runs/r/cancel", ""); status != 202 {
		t.Error(status)
	}
	if _, err := run.Settle(t.Context(), run.Ports{Store: w.Store, Owner: "o"}, run.Settings{}, "r"); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("POST", "/runs/r/cancel", "{}"); status != 202 || out["status"] != "cancelled" {
		t.Errorf("a run that is cancelled already: %d %v", status, out)
	}
	w.refused(409, "ENDED", "has ended: it is cancelled", "POST", "/runs/r/pause", "")
	if got := strings.Join(w.kicked, " "); got != "r r r r" {
		t.Errorf("kicked %q", got)
	}
	w.ask("POST", "/runs/r/resume", "")
	job.Run = nil
	for path, body := range map[string]string{"pause": `{"reason":"` + strings.Repeat("x", 1001) + `"}`, "resume": `{"budget":{}}`, "cancel": `{"now":true}`} {
		w.refused(400, "BAD_REQUEST", "", "POST", "/runs/r/"+path, body)
	}
	for _, verb := range []string{"cancel", "pause", "resume"} {
		w.refused(404, "NOT_FOUND", "no such run", "POST", "/runs/nobody/"+verb, "")
		w.refused(405, "METHOD_NOT_ALLOWED", "possible: POST", "GET", "/runs/r/"+verb, "")
	}
}

func TestX4RetryIsWrittenDown(t *testing.T) {
	w := newWorld(t)
	job := w.failing("r")
	w.refused(409, "AT_WORK", "is at work", "POST", "/runs/r/retry", "")
	w.work(job)
	for body, text := range map[string]string{`{"unknown":"ask"}`: "`unknown` must be", `{"value":1}`: "`value` is for", `{"unknown":"accept","value":1e999}`: "`value`",
		`{"rows":"all"}`: `"rows"`} {
		w.refused(400, "BAD_REQUEST", text, "POST", "/runs/r/retry", body)
	}
	if status, out := w.ask("POST", "/runs/r/retry", `{"unknown":"accept","value":null}`); status != 202 || out["status"] != "paused" {
		t.Errorf("%d %v", status, out)
	}
	asked, err := sheet.LoadControl(t.Context(), w.Store, "r")
	if err != nil || !asked.Retries() || asked.Retry.Unknown != "accept" || string(asked.Retry.Value) != "null" || w.kicked[len(w.kicked)-1] != "r" {
		t.Errorf("%+v %v %v", asked, err, w.kicked)
	}
	w.work(w.start("good", 1))
	w.refused(409, "ENDED", "none of its rows has failed", "POST", "/runs/good/retry", "")
}

func TestThePageIsThere(t *testing.T) {
	w := newWorld(t)
	p := w.Ports
	p.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page " + r.URL.Path)) })
	w.Handler = New(p)
	for path, want := range map[string]string{"/": "page /", "/page/a.js": "page /page/a.js", "/page/": "page /page/"} {
		if got := w.raw("GET", path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	w.refused(404, "NOT_FOUND", "nothing at this path", "GET", "/pages", "")
}
