package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/store"
	"sluice/internal/memory"
)

func put(t *testing.T, l *Links, target string, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/"+strings.TrimPrefix(target, "/"), strings.NewReader(body))
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w.Code
}

func has(t *testing.T, st *store.Store, name, want string) {
	t.Helper()
	r, err := st.Blobs.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil || string(b) != want {
		t.Errorf("%s: %q, %v", name, b, err)
	}
}

// A link does what it was made for, and nothing else.
func TestALinkAllowsOneThing(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	l := NewLinks(st)
	const name = "uploads/01/in.csv"
	link, err := l.Upload(t.Context(), name, blob.Expected{Size: 4}, time.Hour)
	if err != nil || link.Method != "PUT" || strings.HasPrefix(link.URL, "/") {
		t.Fatal(link, err)
	}
	for what, target := range map[string]string{
		"another file":     strings.Replace(link.URL, "in.csv", "on.csv", 1),
		"another folder":   strings.Replace(link.URL, "uploads", "runs", 1),
		"out of the store": strings.Replace(link.URL, "uploads/01", "uploads/..", 1),
		"another size":     strings.Replace(link.URL, "size=4", "size=5", 1),
		"no size":          strings.Replace(link.URL, "&size=4", "", 1),
		"a later end":      strings.Replace(link.URL, "expires=", "expires=9", 1),
		"no signature":     link.URL[:strings.Index(link.URL, "&signature")],
		"nothing":          "links/" + name,
	} {
		if code := put(t, l, target, "x\n1\n"); code != http.StatusForbidden {
			t.Errorf("%s: %d", what, code)
		}
	}
	if code := put(t, NewLinks(st), link.URL, "x\n1\n"); code != http.StatusForbidden {
		t.Errorf("of another process: %d", code)
	}
	if code := put(t, l, link.URL, "x\n1\n2\n"); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger file: %d", code)
	}
	if _, err := st.Blobs.Get(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("something was saved: %v", err)
	}
	if code := put(t, l, link.URL, "x\n1\n"); code != http.StatusOK {
		t.Errorf("the file: %d", code)
	}
	has(t, st, name, "x\n1\n")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+link.URL, http.NoBody)
	w := httptest.NewRecorder()
	if l.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("it can be read with the link to write it: %d", w.Code)
	}
}

func TestLinksExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLinks(&store.Store{Table: memory.New(), Blobs: memory.NewBlobs()})
		link, err := l.Upload(t.Context(), "uploads/01/in.csv", blob.Expected{}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if code := put(t, l, link.URL, "x"); code != http.StatusOK {
			t.Errorf("at its end: %d", code)
		}
		time.Sleep(time.Second)
		if code := put(t, l, link.URL, "x"); code != http.StatusForbidden {
			t.Errorf("after its end: %d", code)
		}
	})
}

// An upload that breaks off leaves nothing.
func TestAnUploadIsSavedWholeOrNotAtAll(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	l := NewLinks(st)
	link, err := l.Upload(t.Context(), "uploads/01/in.csv", blob.Expected{}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(bytes.NewReader([]byte("x\n")), brokenReader{})
	w := httptest.NewRecorder()
	l.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/"+link.URL, broken))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
	if _, err := st.Blobs.Get(t.Context(), "uploads/01/in.csv"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The client's way: a file of any size, also none, with a key that the links do not need.
func TestUploadsAndCallsByTheClient(t *testing.T) {
	const key = "0123456789abcdef"
	p := newProvider(t)
	w := serving(t, t.TempDir(), key)
	c, err := client.New(w.url, key, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "x\n", strings.Repeat("0123456789", 200_000)} {
		name := filepath.Join(t.TempDir(), "in.csv")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		at, err := c.Upload(t.Context(), file, "in.csv")
		if err != nil {
			t.Fatal(err)
		}
		has(t, w.state.Store, at, content)
	}
	var got []call.Answer
	tools := client.Tools{Client: c, File: api.Catalogue{Name: "t.yaml", Text: p.tools()}}
	attempts := []call.Attempt{{Tool: "acme.up", Input: []byte(`{"x":"ada"}`), RequestID: "1"}, {Tool: "acme.up", Input: []byte(`{"y":1}`), RequestID: "2"}}
	if err := tools.Execute(t.Context(), attempts, func(_ int, a call.Answer) { got = append(got, a) }); err != nil {
		t.Fatal(err)
	}
	if string(got[0].Value) != `"ADA!"` || got[1].Error == nil || got[1].Error.Code != "BAD_INPUT" {
		t.Errorf("%+v", got)
	}
	tools.File.Text = "version: 7"
	if err := tools.Execute(t.Context(), attempts, nil); client.Code(err) != "BAD_REQUEST" || !strings.Contains(err.Error(), "t.yaml:1:") {
		t.Errorf("%v", err)
	}
	providers, err := c.Providers(context.Background())
	if err != nil || len(providers.Providers) != 1 || providers.Providers[0].Provider != "acme" || providers.Providers[0].Leased != 0 {
		t.Errorf("%+v, %v", providers, err)
	}
}

// A link for a file whose digest was announced takes that file, and saves nothing of another one.
func TestALinkTakesTheAnnouncedFileOnly(t *testing.T) {
	st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
	l := NewLinks(st)
	const name = "uploads/sha256-x/in.csv"
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	link, err := l.Upload(t.Context(), name, blob.Expected{SHA256: abc}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if code := put(t, l, link.URL, "abd"); code != http.StatusBadRequest {
		t.Errorf("another file: %d", code)
	}
	if code := put(t, l, strings.Replace(link.URL, "sha256=ba78", "sha256=ba79", 1), "abc"); code != http.StatusForbidden {
		t.Errorf("another digest: %d", code)
	}
	if _, err := st.Blobs.Get(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("something was saved: %v", err)
	}
	if code := put(t, l, link.URL, "abc"); code != http.StatusOK {
		t.Errorf("the file: %d", code)
	}
	has(t, st, name, "abc")
}
