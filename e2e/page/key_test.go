package page

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	pagefiles "sluice/internal/page"
)

const goodKey = "k3y-OF-the-deployment"

// guarded is the API behind an API Gateway: the page is for everybody, everything else for those who have the key.
func guarded(api http.Handler) http.Handler {
	files := pagefiles.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/"):
			files.ServeHTTP(w, r)
		case r.Header.Get("X-Api-Key") != goodKey:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":{"code":"INVALID_API_KEY","message":"Forbidden"}}`))
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// In the cloud the key is asked for once, kept in the tab, and sent as a header: never in an address, never elsewhere.
func TestTheKeyIsAskedForAndStaysInTheTab(t *testing.T) {
	w := newWorld(t)
	w.completed("monday", 3)
	s := newSite(t, "/v1", guarded(w.api))
	b := newTab(t)
	b.open(s.URL)
	b.sees("h1", "asks for its key")
	b.picture("asked")
	if got := eval[string](b, `document.activeElement.type`); got != "password" {
		t.Errorf("the focus is on %s", got)
	}
	b.keys("wrong" + kb.Enter)
	b.sees(".error", "not accepted")
	b.sees("h1", "asks for its key")
	b.keys(goodKey + kb.Enter)
	b.sees("table.runs", "monday")
	b.gone("form.key")

	b.do(chromedp.Reload())
	b.sees("table.runs", "monday")
	for _, place := range []string{"location.href", "document.cookie", "JSON.stringify(localStorage)", "document.title", "JSON.stringify(history.state)"} {
		if text := eval[string](b, place); strings.Contains(text, goodKey) {
			t.Errorf("the key is in %s: %s", place, text)
		}
	}
	for _, r := range s.requests() {
		if strings.Contains(r.URL.String(), goodKey) || strings.Contains(r.URL.Path, "/page/") && r.Header.Get("X-Api-Key") != "" {
			t.Errorf("the key went with %s", r.URL)
		}
	}
	b.click("#forget")
	b.sees("h1", "asks for its key")
	if text := eval[string](b, "JSON.stringify(sessionStorage)"); strings.Contains(text, goodKey) {
		t.Error("the key was not forgotten")
	}

	other := newTab(t)
	other.open(s.URL)
	other.sees("h1", "asks for its key")
	b.quiet(s.URL)
}

// On a laptop there is no key, and nothing is asked.
func TestNoKeyIsAskedForWhereThereIsNone(t *testing.T) {
	w := newWorld(t)
	w.completed("monday", 3)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees("table.runs", "monday")
	for _, r := range s.requests() {
		if r.Header.Get("X-Api-Key") != "" {
			t.Error("a key was sent")
		}
	}
	b.gone("#forget")
	b.quiet(s.URL)
}
