package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, method, path string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	for _, path := range []string{"/", "/page/main.js", "/page/style.css", "/page/icon.svg", "/page/none.js", "/index.html", "/page/", "/../page.go"} {
		h := get(t, Handler(), "GET", path, nil).Header
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
			"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestFilesAreServedUnderTheirTypes(t *testing.T) {
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/page/main.js": "text/javascript; charset=utf-8", "/page/style.css": "text/css; charset=utf-8",
		"/page/icon.svg": "image/svg+xml",
	} {
		res := get(t, Handler(), "GET", path, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != want || text(t, res) == "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
		if head := get(t, Handler(), "HEAD", path, nil); head.StatusCode != 200 || text(t, head) != "" {
			t.Errorf("HEAD %s: %d", path, head.StatusCode)
		}
		if post := get(t, Handler(), "POST", path, nil); post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", path, post.StatusCode)
		}
	}
	for _, path := range []string{"/index.html", "/page", "/page/", "/page/none.js", "/page/../page.go", "/runs"} {
		if res := get(t, Handler(), "GET", path, nil); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestAFileThatHasNotChangedIsNotSentAgain(t *testing.T) {
	first := get(t, Handler(), "GET", "/page/main.js", nil)
	tag := first.Header.Get("Etag")
	if !regexp.MustCompile(`^"[0-9a-f]{24}"$`).MatchString(tag) || first.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("%v", first.Header)
	}
	for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		res := get(t, Handler(), "GET", "/page/main.js", http.Header{"If-None-Match": {known}})
		if res.StatusCode != 304 || text(t, res) != "" || res.Header.Get("Etag") != tag || res.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", known, res.StatusCode, res.Header)
		}
	}
	other := get(t, Handler(), "GET", "/page/style.css", http.Header{"If-None-Match": {tag}})
	if other.StatusCode != 200 || other.Header.Get("Etag") == tag {
		t.Errorf("another file: %d", other.StatusCode)
	}
}

// Under an API Gateway the page lies below its stage; and nothing may be fetched from elsewhere.
func TestAllAddressesAreRelativeToTheDocument(t *testing.T) {
	absolute := regexp.MustCompile(`(?:href|src)="(?:/|[a-z]+:)|url\(|@import|from "[^.]|import\("|fetch\(["'` + "`" + `/]|https?://`)
	for path, f := range load() {
		for _, hit := range absolute.FindAllString(strings.ReplaceAll(f.body, "http://www.w3.org/2000/svg", ""), -1) {
			t.Errorf("%s: %s", path, hit)
		}
	}
}

// Markup is never made of text. Trusted types would stop it in the browsers that have them; here it is not even tried.
func TestNoScriptMakesMarkupOfText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|createContextualFragment|setHTML|srcdoc|javascript:|localStorage|document\.cookie`)
	inline := regexp.MustCompile(`(?i)<script(?:>| [^>]*>[^<])|<style|\son[a-z]+=|\sstyle=`)
	for path, f := range load() {
		if hit := forbidden.FindString(f.body); hit != "" && !strings.HasSuffix(path, ".css") {
			t.Errorf("%s has %s", path, hit)
		}
		if path == "/" {
			if hit := inline.FindString(f.body); hit != "" {
				t.Errorf("the document has %s", hit)
			}
		}
	}
}

// Every module that is imported is there: a name that is misspelt would leave the page empty.
func TestEveryModuleIsThere(t *testing.T) {
	files := load()
	imports := regexp.MustCompile(`from "\./([a-z]+\.js)"`)
	used := map[string]bool{"main.js": true}
	for _, f := range files {
		for _, m := range imports.FindAllStringSubmatch(f.body, -1) {
			used[m[1]] = true
			if _, ok := files["/page/"+m[1]]; !ok {
				t.Errorf("%s is imported, and there is none", m[1])
			}
		}
	}
	for path := range files {
		if name := strings.TrimPrefix(path, "/page/"); strings.HasSuffix(name, ".js") && !used[name] {
			t.Errorf("%s is imported by nobody", name)
		}
	}
}
