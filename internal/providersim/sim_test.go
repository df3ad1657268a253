package providersim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

const sec, min1 = Duration(time.Second), Duration(time.Minute)

func sim(t *testing.T, p Provider) *Sim {
	t.Helper()
	p.Name = "p"
	if p.Kind == "" {
		p.Kind = "phone"
	}
	s, err := New(Config{Providers: []Provider{p}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s *Sim, path string) *http.Response {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result()
}

func statuses(s *Sim, n int) (out []int) {
	for range n {
		out = append(out, get(s, "/p/phones/a.example").StatusCode)
	}
	return out
}

func report(s *Sim) ProviderReport { return s.Report().Providers["p"] }

// find returns a domain whose request is in trouble between the given thousandths.
func find(from, to uint32) string {
	for i := 0; ; i++ {
		domain := strings.Repeat("a", i+1) + ".example"
		if due := sum("trouble", "GET /p/phones/"+domain) % 1000; due >= from && due < to && sum("phone", "p", domain)%100 >= 25 {
			return "/p/phones/" + domain
		}
	}
}

func TestTroubleMeetsTheFirstAttemptOnly(t *testing.T) {
	s := sim(t, Provider{Bare: 100, Unavailable: 200, Cut: 300})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	fetch := func(path string) (int, error) {
		res, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == 429 && len(res.Header["Retry-After"])+len(res.Header["X-Ratelimit-Reset"]) > 0 {
			t.Errorf("a bare 429 has %v", res.Header)
		}
		_, err = io.ReadAll(res.Body)
		return res.StatusCode, err
	}
	for _, tt := range []struct {
		path   string
		status int
		cut    bool
	}{
		{find(0, 100), 429, false}, {find(100, 300), 503, false}, {find(300, 600), 200, true}, {find(600, 1000), 200, false},
	} {
		if status, err := fetch(tt.path); status != tt.status || errors.Is(err, io.ErrUnexpectedEOF) != tt.cut {
			t.Errorf("%s: first attempt: %d, %v; want %d, cut %v", tt.path, status, err, tt.status, tt.cut)
		}
		if status, err := fetch(tt.path); status != 200 || err != nil {
			t.Errorf("%s: second attempt: %d, %v", tt.path, status, err)
		}
	}
	r := report(s)
	if r.Cut != 1 || r.Refused429["bare"] != 1 || r.Answered[503] != 1 || r.Holds != 0 || r.Completed != 5 || r.Distinct != 4 {
		t.Errorf("report: %+v", r)
	}
	if len(r.CompletedTwice) != 1 || r.CompletedTwice[0].Request != "GET "+find(600, 1000) || len(r.CompletedTwice[0].At) != 2 {
		t.Errorf("completed twice: %+v", r.CompletedTwice)
	}
}

func TestSlowAnswerThatNobodyWaitsFor(t *testing.T) {
	s := sim(t, Provider{Slow: 1000, SlowBy: min1})
	ctx, leave := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave()
		s.Handler().ServeHTTP(w, r)
	}))
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/p/phones/a.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Error("answered at once")
	}
	server.Close() // waits for the handler
	if r := report(s); r.Aborted != 1 || r.Completed != 0 {
		t.Errorf("report: %+v", r)
	}
}

func TestCredentials(t *testing.T) {
	s := sim(t, Provider{Key: "k"})
	for name, set := range map[string]func(*http.Request){
		"bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer k") },
		"basic":  func(r *http.Request) { r.SetBasicAuth("user", "k") },
		"header": func(r *http.Request) { r.Header.Set("X-Api-Key", "k") },
		"query":  func(r *http.Request) { r.URL.RawQuery = "api_key=k" },
		"none":   func(*http.Request) {},
		"wrong":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
	} {
		r := httptest.NewRequest("GET", "/p/phones/a.example", nil)
		set(r)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if want := name == "none" || name == "wrong"; (w.Code == 401) != want {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if r := report(s); r.Answered[401] != 2 || r.Distinct != 1 {
		t.Errorf("a credential must not be part of what is asked: %+v", r)
	}
}

func TestIdempotencyKeyIsNotChargedTwice(t *testing.T) {
	s := sim(t, Provider{Kind: "verify"})
	for range 2 {
		r := httptest.NewRequest("POST", "/p/verify", strings.NewReader(`{"email": "a@b.example"}`))
		r.Header.Set("Idempotency-Key", "1")
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	if r := report(s); r.Completed != 1 || r.Replayed != 1 || len(r.CompletedTwice) != 0 {
		t.Errorf("report: %+v", r)
	}
}

// What they know is checked row by row against a second implementation, examples/expected.py.
func TestAnswersAreFunctionsOfTheRequest(t *testing.T) {
	tests := []struct {
		kind, method, path, body string
		status                   int
	}{
		{"company", "GET", "/companies/x.invalid", "", 422},
		{"company", "GET", "/companies/", "", 422},
		{"company", "POST", "/companies/a.example", "", 404},
		{"phone", "GET", "/phones/x.invalid", "", 422},
		{"search", "GET", "/search", "", 422},
		{"verify", "POST", "/verify", `{}`, 422},
		{"verify", "POST", "/verify", `[]`, 400},
		{"chat", "POST", "/messages", `{"text": "hi"}`, 200},
		{"chat", "POST", "/elsewhere", `{"text": "hi"}`, 404},
	}
	for _, tt := range tests {
		s := sim(t, Provider{Kind: tt.kind})
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(tt.method, "/p"+tt.path, strings.NewReader(tt.body)))
		if w.Code != tt.status {
			t.Errorf("%s %s %s %s: %d, want %d", tt.kind, tt.method, tt.path, tt.body, w.Code, tt.status)
		}
	}
	if got := companyName("nord-bau.example"); got != "Nord Bau" {
		t.Errorf("company name %q", got)
	}
	if got := sum("a"); got != 0xe40c292c { // a published FNV-1a test vector
		t.Errorf("sum(a) = %#x", got)
	}
}

func TestControlReportResetAndLog(t *testing.T) {
	s := sim(t, Provider{})
	var log bytes.Buffer
	s.LogTo(&log)
	do := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}
	if w := do("POST", "/_control/outage", `{"provider": "p", "seconds": 1.5}`); w.Code != 200 {
		t.Errorf("outage: %d %s", w.Code, w.Body)
	}
	for _, bad := range []string{`{"provider": "q", "seconds": 1}`, `{"provider": "p"}`, `{"provider": "p", "seconds": 1, "announce": "x"}`, `x`} {
		if w := do("POST", "/_control/outage", bad); w.Code != 400 {
			t.Errorf("outage %s: %d", bad, w.Code)
		}
	}
	if w := do("GET", "/p/phones/a.example", ""); w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	var got Report
	if err := json.Unmarshal(do("GET", "/_report", "").Body.Bytes(), &got); err != nil || got.Providers["p"].Refused429["outage"] != 1 {
		t.Errorf("report: %+v, %v", got, err)
	}
	var line logLine
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Request != "GET /p/phones/a.example" || line.Status != 429 || line.Refusal != "outage" {
		t.Errorf("log: %s, %v", log.String(), err)
	}
	do("POST", "/_reset", "")
	if r := report(s); r.Received != 0 || len(r.Refused429) != 0 {
		t.Errorf("after a reset: %+v", r)
	}
	if w := do("GET", "/p/phones/a.example", ""); w.Code == 429 {
		t.Error("a reset does not end the outage")
	}
}

func TestConfigRoundTrip(t *testing.T) {
	b, err := json.Marshal(Demo())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseConfig(b); err != nil || !reflect.DeepEqual(got, Demo()) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{
		`{"providers": [{"name": "a", "kind": "x"}]}`,
		`{"providers": [{"name": "", "kind": "phone"}]}`,
		`{"providers": [{"name": "_report", "kind": "phone"}]}`,
		`{"providers": [{"name": "a", "kind": "phone"}, {"name": "a", "kind": "phone"}]}`,
		`{"providers": [{"name": "a", "kind": "phone", "limits": [{"rate": 0, "per": "1s"}]}]}`,
		`{"providers": [{"name": "a", "kind": "phone", "outages": [{"after": 1, "for": "1s", "announce": "x"}]}]}`,
		`{"providers": [{"name": "a", "kind": "phone", "cut": 800, "bare": 300}]}`,
		`{"providers": [{"name": "a", "kind": "phone", "limit": []}]}`,
		`{`,
	} {
		if _, err := ParseConfig([]byte(bad)); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}
