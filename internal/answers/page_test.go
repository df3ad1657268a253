package answers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/link"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

// hostile is a key that tries to break out of a page.
const hostile = `</style><script>alert(1)</script>"'&<b>`

// site is a page with a run behind it, whose row waits for an answer.
type site struct {
	t      *testing.T
	st     *store.Store
	faulty *tabletest.Faulty
	page   *Page
	secret link.Secret
	log    strings.Builder
}

func newSite(t *testing.T, key, more string) *site {
	f := tabletest.NewFaulty(memory.New())
	s := &site{t: t, st: &store.Store{Table: f, Blobs: memory.NewBlobs()}, faulty: f}
	s.page = &Page{Desk: &Desk{Store: s.st}, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Secret: func(ctx context.Context) (link.Secret, error) { return link.Load(ctx, s.st) }}
	var err error
	if s.secret, err = link.Load(t.Context(), s.st); err != nil {
		t.Fatal(err)
	}
	job, err := run.Start(t.Context(), s.st, run.Request{
		ID: "r", InputName: "in.jsonl", Format: intake.Options{Format: "jsonl"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte("version: 1\ncolumns:\n  - {name: ok, event: {key: \"${row.k}\"" + more + "}}\n")},
		Input: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(`{"k":"other"}` + "\n" + key)), nil
		},
	})
	if err == nil {
		_, err = job.Slice(t.Context(), run.Ports{Store: s.st, Owner: "s"}, 0, run.Settings{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// to is a link to the second row's event.
func (s *site) to(key string, until time.Time) string {
	return Links(s.secret, "https://sluice.example/v1/")(link.Place{Run: "r", Row: 1, Step: 1, Key: key}, until)[len("https://sluice.example/v1"):]
}

func (s *site) ask(method, target, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, r)
	return w
}

func (s *site) post(target, v string) *httptest.ResponseRecorder {
	return s.ask("POST", target, "application/x-www-form-urlencoded", url.Values{"value": {v}}.Encode())
}

func want(t *testing.T, w *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d", w.Code, status)
	}
	for _, part := range parts {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("%q is not in\n%s", part, w.Body)
		}
	}
}

// Looking at a link answers nothing, however often; sending its form does, once.
func TestLookingAnswersNothing(t *testing.T) {
	s := newSite(t, `{"k":"go"}`, "")
	at := s.to("go", time.Now().Add(time.Hour))
	for _, method := range []string{"GET", "HEAD", "GET"} {
		for _, query := range []string{"", "?value=true"} {
			w := s.ask(method, at+query, "", "")
			want(t, w, http.StatusOK)
			if method == "HEAD" && w.Body.Len() > 0 {
				t.Error("HEAD has a body")
			}
		}
	}
	want(t, s.ask("GET", at, "", ""), http.StatusOK, "What is your answer?", `<p class="key">go</p>`, `<button name="value" value="true">Yes</button>`, "Run r, row 2, column ok.", "in time until")
	want(t, s.ask("GET", at+"?value=maybe", "", ""), http.StatusOK, "Do you give this answer?", `value="maybe"`, "<pre>maybe</pre>")
	if mail, err := run.Mail(t.Context(), s.st, run.ShardOf{Run: "r"}); mail || err != nil {
		t.Fatalf("an answer was given: %v, %v", mail, err)
	}
	want(t, s.post(at, "true"), http.StatusOK, "Thank you", "<pre>true</pre>")
	want(t, s.post(at, "false"), http.StatusOK, "This was answered before", "<pre>true</pre>")
	want(t, s.ask("GET", at, "", ""), http.StatusOK, "This was answered", "<pre>true</pre>")
}

// A link is for one row: another that waits for the same key goes on waiting.
func TestALinkAnswersItsOwnRow(t *testing.T) {
	s := newSite(t, `{"k":"other"}`, "")
	want(t, s.post(s.to("other", time.Time{}), `{"ok": true}`), http.StatusOK, "Thank you", `{&#34;ok&#34;:true}`)
	got, err := run.Answer(t.Context(), s.st, "other", []byte("1"), run.Whose{})
	if err != nil || got.Taken != 1 || got.Already != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsSent(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		status     int
		part       string
	}{
		{"application/x-www-form-urlencoded", "value=yes%2C+please", 200, `&#34;yes, please&#34;`},
		{"application/x-www-form-urlencoded; charset=utf-8", "value=12", 200, "<pre>12</pre>"},
		{"application/json", `{"a": [1]}`, 200, `{&#34;a&#34;:[1]}`},
		{"application/json", `{`, 400, "it is not JSON"},
		{"application/json", ``, 400, "it is not JSON"},
		{"application/x-www-form-urlencoded", "", 400, "send a form with one `value`"},
		{"application/x-www-form-urlencoded", "value=1&value=2", 400, "one `value`"},
		{"application/x-www-form-urlencoded", "valeu=1", 400, "one `value`"},
		{"text/plain", "true", 400, "one `value`"},
		{"", "true", 400, "one `value`"},
		{"application/json", `"` + strings.Repeat("x", run.MaxAnswer) + `"`, 400, "at most 1048576 are possible"},
		{"application/json", `"` + strings.Repeat("x", 4*run.MaxAnswer) + `"`, 400, "one `value`"},
	} {
		s := newSite(t, `{"k":"go"}`, "")
		w := s.ask("POST", s.to("go", time.Time{}), c.kind, c.body)
		want(t, w, c.status, c.part)
	}
}

// Whatever a key, an answer or a proposed answer holds is text on the page, and the page can run and load nothing.
func TestNothingBreaksOutOfThePage(t *testing.T) {
	s := newSite(t, `{"k":"</style><script>alert(1)</script>\"'&<b>"}`, "")
	at := s.to(hostile, time.Time{})
	for _, w := range []*httptest.ResponseRecorder{
		s.ask("GET", at, "", ""), s.ask("GET", at+"?value="+url.QueryEscape(hostile), "", ""), s.post(at, hostile), s.post(at, "1"), s.ask("GET", at, "", ""),
		s.ask("GET", "/answers/"+url.PathEscape(hostile), "", ""),
	} {
		body := w.Body.String()
		if strings.Contains(body, "<script") || strings.Contains(body, "<b>") || strings.Count(body, "</style>") != 1 {
			t.Errorf("%s", body)
		}
		if w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%v", w.Header())
		}
	}
}

// The one style of the page is the one that its policy allows.
func TestPolicyAllowsThePagesStyle(t *testing.T) {
	s := newSite(t, `{"k":"go"}`, "")
	body := s.ask("GET", s.to("go", time.Time{}), "", "").Body.String()
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(body)
	if style == nil || !strings.Contains(pageText, style[0]) || strings.Count(body, "style") != 2 {
		t.Errorf("the style is not what was hashed, or not alone:\n%s", body)
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	s := newSite(t, `{"k":"go"}`, ", expires: 1h")
	good := s.to("go", time.Now().Add(time.Hour))
	want(t, s.ask("GET", good[:len(good)-1], "", ""), http.StatusNotFound, "This link is not valid")
	want(t, s.ask("GET", "/answers/", "", ""), http.StatusNotFound, "This link is not valid")
	want(t, s.post("/answers/x", "true"), http.StatusNotFound, "This link is not valid")
	want(t, s.post(s.to("gone", time.Time{}), "true"), http.StatusGone, "not waited for any more")
	w := s.ask("DELETE", good, "", "")
	want(t, w, http.StatusMethodNotAllowed)
	if w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Error(w.Header())
	}
	if err := run.Cancel(t.Context(), s.st, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Settle(t.Context(), run.Ports{Store: s.st, Owner: "o"}, run.Settings{}, "r"); err != nil {
		t.Fatal(err)
	}
	want(t, s.post(good, "true"), http.StatusGone, "not waited for any more")
}

// What goes wrong inside is told to the log and not to a stranger; the answer can be given again. The link is in no log.
func TestFailuresAreNotToldToStrangers(t *testing.T) {
	s := newSite(t, `{"k":"go"}`, "")
	at := s.to("go", time.Time{})
	s.faulty.Inject(tabletest.Fault{Kind: tabletest.NotDone, Times: 1, Err: errors.New("the table is on fire")})
	w := s.post(at, "true")
	want(t, w, http.StatusServiceUnavailable, "Try again")
	if strings.Contains(w.Body.String(), "fire") || !strings.Contains(s.log.String(), "fire") {
		t.Errorf("told %s, logged %s", w.Body, s.log.String())
	}
	want(t, s.post(at, "true"), http.StatusOK, "Thank you")
	if strings.Contains(s.log.String(), strings.TrimPrefix(at, Path)[:20]) {
		t.Error("the log has the link")
	}
}
