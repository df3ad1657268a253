// Package page is the page on which people watch their runs: one document, one style sheet and a few scripts, which are
// part of the program and speak to the HTTP API that serves them. It owns what is shown and how; it refuses to know
// anything about runs that the API does not say, and to load anything from elsewhere.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed files
var embedded embed.FS

// Folder is where the files lie beside the document, as the document names them: relative to itself, so that it can
// be served under any path, such as the stage of an API Gateway.
const Folder = "page"

// policy lets the document do what it needs: scripts, styles and the icon from its own origin, requests to that origin.
// Nothing inline, nothing foreign, no forms that go somewhere, no frames around it. With trusted types a script cannot
// turn text into markup even by mistake.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers go with each file.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	// A browser asks each time and is told that nothing has changed; a new version is seen at once.
	"Cache-Control": "no-cache",
}

// kinds are the types of what there is; a file of another kind is not served.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is what is answered for a path.
type file struct {
	body, kind, tag string
}

// Handler serves the document under `/` and its files under `/page/`. Anything else is 404.
func Handler() http.Handler { return handler(load()) }

type handler map[string]file

// load reads the files that the program was built with.
func load() map[string]file {
	files := map[string]file{}
	err := fs.WalkDir(embedded, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		at := strings.TrimPrefix(name, "files")
		if at == "/index.html" {
			at = "/"
		}
		files[at] = file{string(body), kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic(err) // the files are in the program: a damaged build
	}
	return files
}

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	f, ok := h[r.URL.Path]
	switch {
	case !ok || f.kind == "":
		http.Error(w, "there is nothing here", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this method is not possible here", http.StatusMethodNotAllowed)
	default:
		f.serve(w, r)
	}
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Etag", f.tag)
	if matches(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write([]byte(f.body)) // whoever has left needs no answer
}

// matches compares weakly (RFC 9110, section 13.1.2): a proxy that compresses may have weakened the tag.
func matches(list, tag string) bool {
	for have := range strings.SplitSeq(list, ",") {
		if have = strings.TrimSpace(have); have == "*" || strings.TrimPrefix(have, "W/") == tag {
			return true
		}
	}
	return false
}
