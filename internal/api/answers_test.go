package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/run"
)

// asking starts a run of rows a and b that both wait for an answer.
func (w *world) asking(id string) *run.Job {
	w.t.Helper()
	const m = `"map":"version: 1\nkey: x\ncolumns:\n  - {name: ok, event: {key: \"ok-${row.x}\", expires: 1h}}\n"`
	if status, out := w.ask("POST", "/runs", `{"run":"`+id+`",`+m+`,"rows":[{"x":"a"},{"x":"b"}]}`); status != 202 {
		w.t.Fatal(status, out)
	}
	job, err := run.Plan(w.t.Context(), w.Store, id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.slice(job, run.Awaiting)
	return job
}

func (w *world) slice(job *run.Job, want run.Outcome) {
	w.t.Helper()
	res, err := job.Slice(w.t.Context(), run.Ports{Store: w.Store, Owner: "o"}, 0, run.Settings{Link: nil})
	if err != nil || res.Outcome != want {
		w.t.Fatal(res, err)
	}
}

func TestE2AnswersByTheAPI(t *testing.T) {
	w := newWorld(t)
	job := w.asking("r")
	rows, _ := w.all("status=waiting")
	if len(rows) != 2 {
		t.Fatalf("%v", rows)
	}
	waits, _ := rows[0]["waits"].(map[string]any)
	until, err := time.Parse(time.RFC3339Nano, waits["until"].(string))
	if waits["column"] != "ok" || waits["key"] != "ok-a" || err != nil || time.Until(until) > time.Hour+time.Second || time.Until(until) < 59*time.Minute {
		t.Errorf("%v", waits)
	}
	if _, v := w.ask("GET", "/runs/r", ""); cmp.Diff(map[string]any{"answers": 2.0, "asleep": 0.0}, v["waits"]) != "" {
		t.Errorf("%v", v)
	}
	w.refused(404, "NOBODY_WAITS", `"ok-c"`, "POST", "/answers", `{"key":"ok-c","value":true}`)
	w.refused(404, "NOBODY_WAITS", "in run other", "POST", "/answers", `{"key":"ok-a","value":true,"run":"other"}`)
	for body, text := range map[string]string{`{"value":1}`: "`key` is missing", `{"key":"k"}`: "`value` is missing", `{"key":"k","value":1,"by":"me"}`: `"by"`} {
		w.refused(400, "BAD_REQUEST", text, "POST", "/answers", body)
	}
	status, out := w.ask("POST", "/answers", `{"key":"ok-a","value":{"yes":true}}`)
	delete(out, "at")
	want := map[string]any{"key": "ok-a", "taken": 1.0, "already": 0.0, "value": map[string]any{"yes": true}, "runs": []any{"r"}}
	if diff := cmp.Diff(want, out); status != 200 || diff != "" {
		t.Error(status, diff)
	}
	_, out = w.ask("POST", "/answers", `{"key":"ok-a","value":null}`)
	delete(out, "at")
	want["taken"], want["already"] = 0.0, 1.0
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("a second answer: %s", diff)
	}
	if status, out := w.ask("POST", "/answers", `{"key":"ok-b","value":null,"run":"r"}`); status != 200 || out["value"] != nil {
		t.Errorf("%d %v", status, out)
	}
	w.slice(job, run.Done)
	if rows, _ := w.all("status=completed"); len(rows) != 2 || cmp.Diff(map[string]any{"ok": map[string]any{"yes": true}}, rows[0]["cells"]) != "" {
		t.Errorf("%v", rows)
	}
}

func TestAnAnswerThatComesTooLate(t *testing.T) {
	w := newWorld(t)
	w.asking("r")
	if err := run.Cancel(t.Context(), w.Store, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Settle(t.Context(), run.Ports{Store: w.Store, Owner: "p"}, run.Settings{}, "r"); err != nil {
		t.Fatal(err)
	}
	w.refused(410, "TOO_LATE", "has ended", "POST", "/answers", `{"key":"ok-a","value":1}`)
}

// The page for people is mounted, and documented.
func TestThePageOfALinkIsThere(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{"GET", "POST"} {
		r := httptest.NewRequestWithContext(t.Context(), method, "/answers/no-link", http.NoBody)
		res := httptest.NewRecorder()
		w.ServeHTTP(res, r)
		documented(t, r, "", res)
		if res.Code != 404 || !strings.Contains(res.Body.String(), "This link is not valid") || !strings.HasPrefix(res.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", method, res.Code, res.Body)
		}
	}
}
