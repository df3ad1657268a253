package serve

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/export"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// linkPath is where links lead, below the API.
const linkPath = "/links/"

// maxUpload is the largest file that is taken, as of S3 in one request.
const maxUpload = 5 << 30

// Links are requests that carry their right in themselves, as presigned requests of S3 do: a signature over what may be done,
// and until when. They end with the process.
type Links struct {
	store *store.Store
	key   []byte
}

var _ api.Links = (*Links)(nil)

// NewLinks returns links into the store, signed with a key of this process.
func NewLinks(st *store.Store) *Links {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &Links{store: st, key: key}
}

// right is what a link allows.
type right struct {
	method, path string
	of           blob.Expected // an upload
	expires      int64         // seconds since 1970
}

func (l *Links) sign(r right) string {
	mac := hmac.New(sha256.New, l.key)
	fmt.Fprintf(mac, "%s\n%s\n%d\n%s\n%d", r.method, r.path, r.of.Size, r.of.SHA256, r.expires)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// link is relative to where the API is, so that it holds behind any name.
func (l *Links) link(r right) api.Link {
	q := url.Values{"expires": {strconv.FormatInt(r.expires, 10)}, "signature": {l.sign(r)}}
	if r.of.Size > 0 {
		q.Set("size", strconv.FormatInt(r.of.Size, 10))
	}
	if r.of.SHA256 != "" {
		q.Set("sha256", r.of.SHA256)
	}
	u := url.URL{Path: strings.TrimPrefix(r.path, "/"), RawQuery: q.Encode()}
	return api.Link{Method: r.method, URL: u.String()}
}

// Upload implements api.Links.
func (l *Links) Upload(_ context.Context, name string, of blob.Expected, expires time.Duration) (api.Link, error) {
	return l.link(right{http.MethodPut, linkPath + name, of, time.Now().Add(expires).Unix()}), nil
}

// Table implements api.Links.
func (l *Links) Table(_ context.Context, r *sheet.Run, format string, expires time.Duration) (api.Link, error) {
	return l.link(right{http.MethodGet, linkPath + "tables/" + r.ID + "." + format, blob.Expected{}, time.Now().Add(expires).Unix()}), nil
}

// Published implements api.Links.
func (l *Links) Published(_ context.Context, id, name string, expires time.Duration) (api.Link, error) {
	return l.link(right{http.MethodGet, linkPath + run.Published + id + "/" + name, blob.Expected{}, time.Now().Add(expires).Unix()}), nil
}

// ServeHTTP does what a link allows.
func (l *Links) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	granted, err := l.granted(r)
	if err != nil {
		refuse(w, http.StatusForbidden, api.Forbidden, err.Error())
		return
	}
	name := strings.TrimPrefix(granted.path, linkPath)
	switch {
	case granted.method == http.MethodPut:
		l.put(w, r, granted)
	case strings.HasPrefix(name, run.Published):
		l.published(w, r, name)
	default:
		l.table(w, r)
	}
}

var errLink = errors.New("this link is not valid")

func (l *Links) granted(r *http.Request) (right, error) {
	q := r.URL.Query()
	g := right{method: r.Method, path: r.URL.Path, of: blob.Expected{SHA256: q.Get("sha256")}}
	if g.method == http.MethodHead {
		g.method = http.MethodGet
	}
	var err error
	if g.expires, err = strconv.ParseInt(q.Get("expires"), 10, 64); err != nil {
		return g, errLink
	}
	if size := q.Get("size"); size != "" {
		if g.of.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
			return g, errLink
		}
	}
	if !hmac.Equal([]byte(l.sign(g)), []byte(q.Get("signature"))) {
		return g, errLink
	}
	if time.Now().Unix() > g.expires {
		return g, errors.New("this link has expired; ask for a new one")
	}
	return g, nil
}

// put saves a file, whole or not at all.
func (l *Links) put(w http.ResponseWriter, r *http.Request, g right) {
	size := g.of.Size
	if size == 0 {
		size = maxUpload
	}
	if r.ContentLength > size || g.of.Size > 0 && r.ContentLength != g.of.Size {
		refuse(w, http.StatusRequestEntityTooLarge, api.TooLarge, fmt.Sprintf("the file has %d bytes, and not %d as was asked for", r.ContentLength, size))
		return
	}
	err := l.store.Blobs.Put(r.Context(), strings.TrimPrefix(g.path, linkPath), g.of.Check(http.MaxBytesReader(w, r.Body, size)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, api.TooLarge, fmt.Sprintf("the file has more than %d bytes", size))
	case errors.Is(err, blob.ErrUnexpected):
		refuse(w, http.StatusBadRequest, api.BadRequest, err.Error())
	case err != nil:
		refuse(w, http.StatusInternalServerError, api.Internal, "the file was not saved; trying again is harmless")
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// asFile makes the answer a file that is saved and never shown: what a run has written is nobody's page, least of all one of
// this server's.
func asFile(w http.ResponseWriter, name, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

// published gives what a run has published.
func (l *Links) published(w http.ResponseWriter, r *http.Request, name string) {
	object, err := l.store.Blobs.Get(r.Context(), name)
	switch {
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrInvalid):
		refuse(w, http.StatusNotFound, api.NotFound, "there is nothing of this name")
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, api.Internal, "it cannot be read; trying again is harmless")
		return
	}
	defer object.Close()
	asFile(w, path.Base(name), "application/octet-stream")
	if _, err := io.Copy(w, object); err != nil {
		panic(http.ErrAbortHandler) // a part is not taken for the whole
	}
}

// table streams the finished table of a run. What goes wrong behind the first bytes breaks the connection, so that a part
// is never taken for the whole (H8).
func (l *Links) table(w http.ResponseWriter, r *http.Request) {
	id, format, _ := cutLast(strings.TrimPrefix(r.URL.Path, linkPath+"tables/"), ".")
	job, err := run.LoadJob(r.Context(), l.store, id)
	if err != nil {
		refuse(w, http.StatusInternalServerError, api.Internal, "the run cannot be read; trying again is harmless")
		return
	}
	out := &started{Writer: w, begin: func() {
		asFile(w, id+"."+format, map[string]string{export.CSV: "text/csv; charset=utf-8", export.JSONL: "application/jsonl"}[format])
	}}
	err = job.Export(r.Context(), run.Ports{Store: l.store}, out, format)
	switch {
	case err == nil:
		out.start()
	case !out.begun:
		refuse(w, http.StatusConflict, api.NotCompleted, err.Error())
	default:
		panic(http.ErrAbortHandler)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// started is a writer that does something before its first byte.
type started struct {
	io.Writer
	begin func()
	begun bool
}

func (s *started) start() {
	if !s.begun {
		s.begun = true
		s.begin()
	}
}

func (s *started) Write(b []byte) (int, error) {
	s.start()
	return s.Writer.Write(b)
}

// refuse answers with an error in the form of the API.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(api.ErrorBody{Error: api.ErrorDetail{Code: code, Message: message}}) // nobody else to tell
}
