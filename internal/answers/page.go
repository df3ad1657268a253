package answers

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"sluice/internal/core/link"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
	"sluice/internal/edge"
)

// Page is where a person who has a link sees what is asked, and answers. Looking at it answers nothing: programs look at
// links too, to show a preview of them or to search them for harm. It is mounted at Path, for GET, HEAD and POST.
type Page struct {
	Desk   *Desk
	Secret func(context.Context) (link.Secret, error)
	Log    *slog.Logger
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// policy lets the page show its own style and send its own forms, and nothing else.
var policy = "default-src 'none'; style-src 'sha256-" + styleHash() + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func styleHash() string {
	_, rest, _ := strings.Cut(pageText, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// view is what the page shows.
type view struct {
	Title, Key, Text, Value string
	Ask                     bool // there is something to answer
	Proposed                string
	Run, Column, Until      string
	Row                     int64
}

// maxShown bounds what is shown of a value.
const maxShown = 10_000

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	status, v := p.serve(w, r)
	line := []any{slog.String(edge.KeyMethod, r.Method), slog.String(edge.KeyRoute, Path), slog.Int(edge.KeyStatus, status)}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		status, line = http.StatusInternalServerError, append(line, slog.Any(edge.KeyError, err))
	}
	head := w.Header()
	for name, text := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Robots-Tag": "noindex",
		"Referrer-Policy": "no-referrer", // the address is worth an answer
	} {
		head.Set(name, text)
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // whoever asked has gone
	}
	edge.With(r.Context(), p.Log).Info("request", append(line, slog.Int64(edge.KeyMillis, time.Since(began).Milliseconds()))...)
}

func (p *Page) serve(w http.ResponseWriter, r *http.Request) (int, view) {
	ctx := r.Context()
	secret, err := p.Secret(ctx)
	if err != nil {
		return p.broken(ctx, err)
	}
	at, err := secret.Open(strings.TrimPrefix(r.URL.Path, Path), time.Now())
	if errors.Is(err, link.ErrInvalid) {
		return http.StatusNotFound, view{Title: "This link is not valid", Text: "It may have been cut off on its way: copy it whole."}
	}
	waiter := &sheet.Waiter{Key: at.Key, Run: at.Run, Row: at.Row, Column: at.Column, Step: at.Step}
	if err := waiter.Load(ctx, p.Desk.Store); errors.Is(err, table.ErrNotFound) {
		return http.StatusGone, view{Title: "This is not waited for any more", Key: at.Key}
	} else if err != nil {
		return p.broken(ctx, err)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return p.show(waiter, r.URL.Query().Get("value"))
	case http.MethodPost:
		return p.take(w, r, at)
	}
	w.Header().Set("Allow", "GET, HEAD, POST")
	return http.StatusMethodNotAllowed, view{Title: "This is not possible here"}
}

// broken hides what went wrong from a stranger, and tells it the log.
func (p *Page) broken(ctx context.Context, err error) (int, view) {
	edge.With(ctx, p.Log).Error("request", slog.String(edge.KeyRoute, Path), slog.Any(edge.KeyError, err))
	return http.StatusServiceUnavailable, view{Title: "This does not work at the moment", Text: "It is not known whether an answer was taken. Try again."}
}

// show is the page of a question, or of what has become of it.
func (p *Page) show(w *sheet.Waiter, proposed string) (int, view) {
	switch {
	case w.State == sheet.WaiterAnswered:
		return http.StatusOK, view{Title: "This was answered", Key: w.Key, Text: "At " + moment(w.AnsweredAt) + ", with:", Value: shown(w.Value)}
	case w.State != sheet.WaiterOpen, !w.Open && !time.Now().Before(w.Until):
		return http.StatusGone, view{Title: "This is not waited for any more", Key: w.Key, Text: "It was, until " + moment(w.Until) + "."}
	}
	v := view{Title: "What is your answer?", Key: w.Key, Ask: true, Run: w.Run, Column: w.Name, Row: w.Index + 1}
	if !w.Open {
		v.Until = moment(w.Until)
	}
	if proposed != "" && len(proposed) <= maxShown {
		v.Title, v.Proposed, v.Value = "Do you give this answer?", proposed, proposed
	}
	return http.StatusOK, v
}

// take gives the answer.
func (p *Page) take(w http.ResponseWriter, r *http.Request, at link.Place) (int, view) {
	given, err := given(w, r)
	if err != nil {
		return http.StatusBadRequest, view{Title: "This is no answer", Key: at.Key, Text: err.Error()}
	}
	got, err := p.Desk.Answer(r.Context(), at.Key, given, run.Whose{Run: at.Run, Place: &at})
	switch {
	case errors.Is(err, run.ErrBadAnswer):
		return http.StatusBadRequest, view{Title: "This is no answer", Key: at.Key, Text: err.Error()}
	case errors.Is(err, run.ErrTooLate), errors.Is(err, run.ErrNobodyWaits):
		return http.StatusGone, view{Title: "This is not waited for any more", Key: at.Key, Text: err.Error()}
	case err != nil:
		return p.broken(r.Context(), err)
	case got.Taken == 0:
		return http.StatusOK, view{Title: "This was answered before", Key: at.Key, Text: "That answer stands:", Value: shown(got.Value)}
	}
	return http.StatusOK, view{Title: "Thank you", Key: at.Key, Text: "Your answer was taken:", Value: shown(got.Value)}
}

var errNoValue = errors.New("send a form with one `value`, or JSON")

// given reads the answer: JSON as it is, or a form's value, which is JSON if it can be read as such, and text otherwise.
func given(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	const overhead = 3 // a form writes a byte as three at worst
	r.Body = http.MaxBytesReader(w, r.Body, overhead*run.MaxAnswer+100)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, errNoValue
	}
	switch kind {
	case "application/json":
		var b bytes.Buffer
		if _, err := b.ReadFrom(r.Body); err != nil {
			return nil, errNoValue
		}
		return b.Bytes(), nil
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil || len(r.PostForm["value"]) != 1 {
			return nil, errNoValue
		}
		v, _, err := Parse(r.PostForm.Get("value"))
		return v, err
	}
	return nil, errNoValue
}

// Parse reads what a person has typed: JSON if it can be read as JSON, and text otherwise.
func Parse(s string) (v json.RawMessage, isText bool, err error) {
	if _, err := value.Decode(json.RawMessage(s)); err == nil {
		return json.RawMessage(s), false, nil
	}
	v, err = value.Encode(s)
	return v, true, err
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func shown(v json.RawMessage) string {
	s := string(v)
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "..."
	}
	return s
}
