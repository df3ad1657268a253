package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/answers"
	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// world is the API with everything around it, in memory.
type world struct {
	*Handler
	t       *testing.T
	log     strings.Builder
	started []string
	kicked  []string
	down    error // of what works on runs
	tools   *toolbox
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, tools: &toolbox{}}
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	desk := &answers.Desk{Store: st}
	w.Handler = New(Ports{
		Desk: desk, AnswerPage: answers.NewPage(desk, slog.New(slog.DiscardHandler)),
		Store: st, Starter: &start.Starter{Store: st, Executions: w, Accept: start.ForCloud(false)}, Kicker: w, Links: links{}, Tools: w.tools,
		Log: slog.New(slog.NewJSONHandler(&w.log, nil)), RequestID: func(context.Context) string { return "4711" },
	})
	return w
}

// Start implements start.Executions.
func (w *world) Start(_ context.Context, run string, execution int) error {
	if w.down == nil {
		w.started = append(w.started, run+"--"+strconv.Itoa(execution))
	}
	return w.down
}

// Kick implements Kicker.
func (w *world) Kick(_ context.Context, id string) error {
	w.kicked = append(w.kicked, id)
	return w.down
}

type relative struct{ links }

func (relative) Published(_ context.Context, _, name string, _ time.Duration) (Link, error) {
	return Link{Method: "GET", URL: "links/" + name + "?signature=hush"}, nil
}

type links struct{}

func (links) Upload(_ context.Context, name string, of blob.Expected, _ time.Duration) (Link, error) {
	l := Link{Method: "PUT", URL: "https://bucket/" + name + "?signature=hush"}
	if of.Size > 0 {
		l.Header = map[string]string{"Content-Length": strconv.FormatInt(of.Size, 10)}
	}
	return l, nil
}

func (links) Table(_ context.Context, r *sheet.Run, format string, _ time.Duration) (Link, error) {
	return Link{Method: "GET", URL: "https://bucket/" + r.ID + "." + format + "?signature=hush"}, nil
}

func (links) Published(_ context.Context, run, name string, _ time.Duration) (Link, error) {
	return Link{Method: "GET", URL: "https://bucket/published/" + run + "/" + name + "?signature=hush"}, nil
}

// toolbox answers calls as it is told.
type toolbox struct {
	answer   func(ctx context.Context, a call.Attempt) (call.Answer, error)
	asked    []call.Attempt
	of       []string
	closed   int
	patience time.Duration
}

func (b *toolbox) Patience() time.Duration {
	if b.patience == 0 {
		return time.Minute
	}
	return b.patience
}

func (b *toolbox) Gateway(_ context.Context, run string, tools Catalogue) (Gateway, error) {
	if tools.Text == "bad" {
		return nil, strict.Errorf("%s:1:1: not a tool file", tools.Name)
	}
	b.of = append(b.of, run+"|"+tools.Name+"|"+tools.Text)
	return b, nil
}

func (b *toolbox) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	b.asked = append(b.asked, batch...)
	a, err := b.answer(ctx, batch[0])
	if err == nil {
		deliver(0, a)
	}
	return err
}

func (b *toolbox) Close(context.Context) error {
	b.closed++
	return nil
}

type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// request is one with a JSON body, or none.
func request(t *testing.T, method, target, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// ask makes a request, and holds the exchange against the documentation.
func (w *world) ask(method, target, body string, opts ...option) (int, map[string]any) {
	w.t.Helper()
	r := request(w.t, method, target, body)
	for _, o := range opts {
		o(r)
	}
	res := httptest.NewRecorder()
	w.ServeHTTP(res, r)
	documented(w.t, r, body, res)
	var out map[string]any
	if err := json.Unmarshal(res.Body.Bytes(), &out); err != nil || res.Header().Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%s %s: %d %v %s", method, target, res.Code, res.Header(), res.Body)
	}
	return res.Code, out
}

// refused makes a request that must fail, and returns the error.
func (w *world) refused(status int, code, text, method, target, body string, opts ...option) map[string]any {
	w.t.Helper()
	got, out := w.ask(method, target, body, opts...)
	detail, _ := out["error"].(map[string]any)
	message, _ := detail["message"].(string)
	if got != status || detail["code"] != code || !strings.Contains(message, text) || len(out) != 1 {
		w.t.Errorf("%s %s %.120s: %d %v; want %d %s, %q", method, target, body, got, out, status, code, text)
	}
	return detail
}

const goodMap = `"map":"version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\n"`

// start starts a run of so many rows.
func (w *world) start(id string, rows int) *run.Job {
	w.t.Helper()
	var list []string
	for i := range rows {
		list = append(list, `{"x":`+strconv.Itoa(i)+`}`)
	}
	if status, out := w.ask("POST", "/runs", `{"run":"`+id+`",`+goodMap+`,"rows":[`+strings.Join(list, ",")+`]}`); status != 202 {
		w.t.Fatal(status, out)
	}
	job, err := run.Plan(w.t.Context(), w.Store, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// failing starts a run of a row whose cell cannot be computed.
func (w *world) failing(id string) *run.Job {
	w.t.Helper()
	if status, out := w.ask("POST", "/runs", `{"run":"`+id+`","map":"version: 1\ncolumns:\n  - {name: y, value: \"${1 / int(row.x)}\"}\n","rows":[{"x":"0"}]}`); status != 202 {
		w.t.Fatal(status, out)
	}
	job, err := run.Plan(w.t.Context(), w.Store, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// work brings a run of one shard to its end.
func (w *world) work(job *run.Job) {
	w.t.Helper()
	if _, err := job.Slice(w.t.Context(), run.Ports{Store: w.Store, Owner: "o"}, 0, run.Settings{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := job.Finish(w.t.Context(), run.Ports{Store: w.Store}, run.Settings{}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// raw is the body of an answer.
func (w *world) raw(method, target string) string {
	w.t.Helper()
	res := httptest.NewRecorder()
	w.ServeHTTP(res, httptest.NewRequestWithContext(w.t.Context(), method, target, http.NoBody))
	return res.Body.String()
}

// fuzzed makes a request out of anything that can be one.
func (w *world) fuzzed(method, target, body string) (int, map[string]any) {
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://x", strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	u, err := r.URL.Parse(target)
	if err != nil {
		return 0, nil
	}
	r.URL = u
	r.Header.Set("Content-Type", "application/json")
	res := httptest.NewRecorder()
	w.ServeHTTP(res, r)
	var out map[string]any
	if err := json.Unmarshal(res.Body.Bytes(), &out); err != nil && method != http.MethodHead && method != http.MethodConnect {
		w.t.Errorf("%d %s: %v", res.Code, res.Body, err)
	}
	return res.Code, out
}
