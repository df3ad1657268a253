package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// gateway is what API Gateway is to a client: below the stage there is the API, and everything else is not its own.
func gateway(stage string, below http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/"+stage+"/")
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": "Missing Authentication Token"})
			return
		}
		in := r.Clone(r.Context())
		in.URL.Path, in.URL.RawPath = "/"+rest, ""
		below.ServeHTTP(w, in)
	})
}

// All that the page leads to lies below the stage: its places, its requests, what is done, and what is downloaded.
func TestEverythingLiesBelowTheStage(t *testing.T) {
	w := newWorld(t)
	if err := w.end(w.drive(w.started("monday", mapText+"\nfinish:\n  - publish: {name: report.txt, public: false, content: done}\n", "x", "ok1", "once2"))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", gateway("prod", w.api))
	stage := s.URL + "prod/"
	b := newTab(t)
	b.open(stage)
	b.sees("table.runs", "monday")
	b.click(`.top nav a[href="#/providers"]`)
	b.sees("h1", "Providers")
	b.click(".brand")
	b.click(`a[href="#/runs/monday"]`)
	b.sees("table.rows td.bad", "HTTP_422")
	b.click("#do-retry")
	b.click("dialog button.primary")
	b.sees(".notice.n-good", "Every row is complete.")
	b.click("#do-download")
	b.click("table.finish button")
	fetched := func(file string) bool {
		return slices.ContainsFunc(s.requests(), func(r *http.Request) bool { return r.URL.Path == "/prod/files/"+file })
	}
	b.untilGo("what was asked for", func() bool { return fetched("monday.csv") && fetched("monday/report.txt") })
	b.click(".crumbs a")
	b.sees("table.runs", "2 of 2")
	for _, r := range s.requests() {
		if !strings.HasPrefix(r.URL.Path, "/prod/") {
			t.Errorf("a request out of the stage: %s %s", r.Method, r.URL.Path)
		}
	}
	b.quiet(stage)
}
