package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/start"
)

const publishing = `"map":"version: 1\nvars: {n: 0}\ncolumns:\n  - {name: y, value: \"${row.x}\"}\nfinish:\n` +
	`  - {publish: {name: note.html, public: true, content: \"<script>alert(1)</script>\"}}\n` +
	`  - {publish: {name: report.json, public: false, content: \"${run}\"}}\n` +
	`  - {publish: {name: broken, public: true, content: \"${1 / vars.n}\"}}\n"`

// published is a world in which a run has published something.
func publishedWorld(t *testing.T, allowed bool) *world {
	w := newWorld(t)
	w.AllowPublic = allowed
	w.Starter = &start.Starter{Store: w.Store, Executions: w, Accept: start.ForCloud(true)}
	if status, out := w.ask("POST", "/runs", `{"run":"r",`+publishing+`,"rows":[{"x":1}]}`); status != 202 {
		t.Fatal(status, out)
	}
	job, err := run.Plan(t.Context(), w.Store, "r")
	if err != nil {
		t.Fatal(err)
	}
	w.work(job)
	return w
}

// The view of a run says what became of its end, and links to what was published; a list only warns.
func TestFinishIsShown(t *testing.T) {
	w := publishedWorld(t, false)
	_, v := w.ask("GET", "/runs/r", "")
	steps, _ := v["finish"].([]any)
	warnings, _ := v["warnings"].([]any)
	if len(steps) != 3 || len(warnings) != 1 || warnings[0] != "finish step 3 (publish broken): EXPRESSION: ${1 / vars.n}: division by zero" {
		t.Fatalf("%v, %v", steps, warnings)
	}
	report := steps[1].(map[string]any)
	link, _ := report["link"].(map[string]any)
	if report["publish"] != "report.json" || report["public"] != nil || link["url"] != "https://bucket/published/r/report.json?signature=hush" || link["expiresAt"] == "" {
		t.Errorf("%v", report)
	}
	if broken := steps[2].(map[string]any); broken["link"] != nil || broken["error"] == nil {
		t.Errorf("%v", broken)
	}
	_, list := w.ask("GET", "/runs", "")
	listed := list["runs"].([]any)[0].(map[string]any)
	if listed["finish"] != nil || listed["warnings"] == nil {
		t.Errorf("%v", listed)
	}
	if strings.Contains(w.log.String(), "hush") {
		t.Error("a link was logged")
	}
}

// Everybody gets what is public, where that is allowed, and from another origin than the API's. What is not public, failed,
// not there or not allowed cannot be told apart.
func TestPublishedForEverybody(t *testing.T) {
	w := publishedWorld(t, true)
	res := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/published/r/note.html", http.NoBody)
	w.ServeHTTP(res, r)
	documented(t, r, "", res)
	if to := res.Header().Get("Location"); res.Code != 302 || to != "https://bucket/published/r/note.html?signature=hush" || strings.Contains(res.Body.String(), "<script") ||
		res.Header().Get("Content-Type") != "application/json" || res.Header().Get("X-Content-Type-Options") != "nosniff" || res.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", res.Code, res.Header(), res.Body)
	}
	var same map[string]any
	for _, path := range []string{"/published/r/report.json", "/published/r/broken", "/published/r/other", "/published/other/note.html", "/published/r/NOTE.html",
		"/published/%20/x", "/published/r/..%2Fr%2Fnote.html"} {
		detail := w.refused(404, "NOT_FOUND", "there is nothing at this path", "GET", path, "")
		if same == nil {
			same = detail
		}
		if detail["message"] != same["message"] {
			t.Errorf("%s: %v", path, detail)
		}
	}
	publishedWorld(t, false).refused(404, "NOT_FOUND", "there is nothing at this path", "GET", "/published/r/note.html", "")
}

// Links of a server on this machine are relative to where its API is.
func TestPublishedLeadsToARelativeLink(t *testing.T) {
	w := publishedWorld(t, true)
	w.Links = relative{}
	res := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/published/r/note.html", http.NoBody)
	w.ServeHTTP(res, r)
	to, err := r.URL.Parse(res.Header().Get("Location"))
	if err != nil || to.Path != "/links/note.html" {
		t.Errorf("%v, %v", to, err)
	}
}

// A map that publishes for everybody is refused before anything is written, unless the deployment allows it.
func TestAPublicMapIsRefusedWhereThatIsNotAllowed(t *testing.T) {
	w := newWorld(t)
	detail := w.refused(400, "BAD_REQUEST", "map.yaml:6:41: `note.html` would be for everybody, which is not allowed here", "POST", "/runs",
		`{"run":"r",`+publishing+`,"rows":[{"x":1}]}`)
	if problems, _ := detail["problems"].([]any); len(problems) != 2 {
		t.Errorf("%v", detail)
	}
	w.refused(404, "NOT_FOUND", "", "GET", "/runs/r", "")
}

// While steps are left to do, the table can be fetched.
func TestTableCanBeFetchedBeforeTheLastStep(t *testing.T) {
	w := newWorld(t)
	job := w.start("r", 1)
	if _, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Owner: "o"}, 0, run.Settings{}); err != nil {
		t.Fatal(err)
	}
	w.refused(409, "NOT_COMPLETED", "the run is running", "GET", "/runs/r/export", "")
	job.Run.WholeAt = job.Run.StartedAt
	if err := sheet.Save(t.Context(), w.Store, job.Run); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("GET", "/runs/r/export", ""); status != 200 {
		t.Errorf("%d %v", status, out)
	}
	if _, v := w.ask("GET", "/runs/r", ""); v["wholeAt"] == nil || v["status"] != "running" {
		t.Errorf("%v", v)
	}
}
