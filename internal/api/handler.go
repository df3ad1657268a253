package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"sluice/internal/edge"
	"sluice/internal/strict"
)

// MaxBody is the largest body that is read: what Lambda takes (6 MB), less what its event adds. Tables come as uploads.
const MaxBody = 5 << 20

// Route is one thing that can be asked.
type Route struct {
	Method, Path string // as in net/http's patterns
	do           func(*Handler, *http.Request) (answer, error)
	page         func(*Handler, http.ResponseWriter, *http.Request) // instead of do: for people
}

// Routes are all of them, in the order of the documentation.
func Routes() []Route {
	const get, post = http.MethodGet, http.MethodPost
	return []Route{
		{Method: post, Path: "/uploads", do: (*Handler).upload},
		{Method: post, Path: "/runs", do: (*Handler).startRun},
		{Method: get, Path: "/runs", do: (*Handler).listRuns},
		{Method: get, Path: "/runs/{id}", do: (*Handler).showRun},
		{Method: get, Path: "/runs/{id}/rows", do: (*Handler).listRows},
		{Method: get, Path: "/runs/{id}/export", do: (*Handler).exportRun},
		{Method: get, Path: "/published/{id}/{name}", do: (*Handler).published},
		{Method: post, Path: "/runs/{id}/cancel", do: (*Handler).cancelRun},
		{Method: post, Path: "/runs/{id}/pause", do: (*Handler).pauseRun},
		{Method: post, Path: "/runs/{id}/resume", do: (*Handler).resumeRun},
		{Method: post, Path: "/runs/{id}/retry", do: (*Handler).retryRun},
		{Method: post, Path: "/runs/{id}/extend", do: (*Handler).extendRun},
		{Method: post, Path: "/answers", do: (*Handler).answerEvent},
		{Method: get, Path: "/answers/{link}", page: (*Handler).answerPage},
		{Method: post, Path: "/answers/{link}", page: (*Handler).answerPage},
		{Method: post, Path: "/tools/{name}", do: (*Handler).callTool},
		{Method: get, Path: "/providers", do: (*Handler).listProviders},
	}
}

// Handler answers requests.
type Handler struct {
	Ports
	mux *http.ServeMux
}

// New returns the handler of the API.
func New(p Ports) *Handler {
	h := &Handler{Ports: p, mux: http.NewServeMux()}
	paths := map[string][]Route{}
	for _, r := range Routes() {
		paths[r.Path] = append(paths[r.Path], r)
	}
	for pattern, routes := range paths {
		if page := routes[0].page; page != nil {
			h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { page(h, w, r) })
			continue
		}
		h.mux.Handle(pattern, h.at(pattern, routes))
	}
	h.mux.Handle("/", h.at("", nil))
	if p.Page != nil {
		h.mux.Handle("GET /{$}", p.Page)
		h.mux.Handle("GET /page/", p.Page)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = trimmed(r)
	if p := r.URL.Path; !strings.HasPrefix(p, "/") || path.Clean(p) != p && !strings.HasPrefix(p, "/page/") { // the mux would redirect
		h.at("", nil).ServeHTTP(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// at answers the requests to a path.
func (h *Handler) at(pattern string, routes []Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		line, level := []any{slog.String(edge.KeyMethod, clip(r.Method)), slog.String(edge.KeyRoute, pattern)}, slog.LevelInfo
		a, err := h.answer(r, routes)
		if err != nil {
			if a = h.failure(r, err); a.status >= http.StatusInternalServerError {
				line, level = append(line, slog.Any(edge.KeyError, err)), slog.LevelError
			}
		}
		write(w, r, a)
		line = append(line, slog.Int(edge.KeyStatus, a.status), slog.Int64(edge.KeyMillis, time.Since(began).Milliseconds()))
		edge.With(r.Context(), h.Log).Log(r.Context(), level, "request", line...)
	})
}

// trimmed is the request without the slash at the end of its path, which some put there.
func trimmed(r *http.Request) *http.Request {
	if r.URL.Path == "/" || !strings.HasSuffix(r.URL.Path, "/") || strings.HasPrefix(r.URL.Path, "/page/") {
		return r
	}
	c := r.Clone(r.Context())
	c.URL.Path, c.URL.RawPath = strings.TrimSuffix(r.URL.Path, "/"), strings.TrimSuffix(r.URL.RawPath, "/")
	return c
}

func (h *Handler) answer(r *http.Request, routes []Route) (a answer, err error) {
	if len(routes) == 0 {
		return a, problem(http.StatusNotFound, NotFound, "there is nothing at this path")
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(routes, func(known Route) bool { return known.Method == method })
	if i < 0 {
		var methods []string
		for _, known := range routes {
			methods = append(methods, known.Method)
		}
		return a, problem(http.StatusMethodNotAllowed, MethodNotAllowed, "%s is not possible here; possible: %s", clip(r.Method), strings.Join(methods, ", "))
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return routes[i].do(h, r)
}

// answer is a status and what is written as JSON.
type answer struct {
	status   int
	body     any
	location string // of a redirection
}

func ok(body any) (answer, error) { return answer{status: http.StatusOK, body: body}, nil }

func write(w http.ResponseWriter, r *http.Request, a answer) {
	b, err := json.Marshal(a.body)
	if err != nil {
		a.status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"the answer cannot be written"}}`)
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	if a.location != "" {
		head.Set("Location", a.location)
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // whoever asked has gone
	}
}

// decode reads the body strictly. Only JSON is taken, which no form of a web page can send.
func decode(r *http.Request, into any) error {
	b, err := body(r)
	if err != nil {
		return err
	}
	return strict.Decode(b, into)
}

// decodeIfAny is decode for a body that may be left out.
func decodeIfAny(r *http.Request, into any) error {
	b, err := body(r)
	if err != nil || len(b) == 0 {
		return err
	}
	return strict.Decode(b, into)
}

func body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problem(http.StatusRequestEntityTooLarge, TooLarge, "the body has more than %d bytes; tables are taken as uploads (POST /uploads)", MaxBody)
	case err != nil:
		return nil, strict.Errorf("the body ended too early")
	case len(b) == 0:
		return nil, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, problem(http.StatusUnsupportedMediaType, UnsupportedMedia, "the body must be JSON, and the Content-Type application/json")
	}
	return b, nil
}

// query reads the parameters that a route knows. Each is given once at most, and others are refused by name.
func query(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, strict.Errorf("the parameters of the URL cannot be read")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, strict.Errorf("the parameter %q is not known here; known: %s", clip(name), strings.Join(append(known, "no others"), ", "))
		case len(given) > 1:
			return nil, strict.Errorf("the parameter %q is given %d times", name, len(given))
		}
	}
	return values, nil
}

func clip(s string) string {
	const longest = 80
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}
