package cloud

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// The page is served below the stage of the deployed API, to a browser that has no key yet, and so is all that it names.
func TestThePageIsServedBelowTheStage(t *testing.T) {
	s := deployed(t)
	at, err := url.Parse(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	below := at.Path
	get := func(u *url.URL) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		status, body := exchange(t, req)
		if status != http.StatusOK || !strings.HasPrefix(u.Path, below) {
			t.Fatalf("%s: status %d: %.300s", u, status, body)
		}
		return string(body)
	}
	document := get(at)
	if !strings.Contains(document, "<title>Sluice</title>") {
		t.Errorf("the document is %.300s", document)
	}
	named := regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(document, -1)
	if len(named) < 3 {
		t.Errorf("the document names only %v", named)
	}
	for _, m := range named {
		next, err := at.Parse(m[1])
		if err != nil {
			t.Fatal(err)
		}
		get(next)
	}
}
