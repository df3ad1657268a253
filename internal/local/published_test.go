package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/core/blob"
	"sluice/internal/core/run"
)

// What is published is a plain file of the state folder, and no name leads anywhere else.
func TestPublishedFilesLieWhereTheyAreSaidToLie(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	st, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Store.Blobs.Put(t.Context(), run.PublishedName("r1", "report.json"), strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(PublishedPath(dir, "r1", "report.json")); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
	if r, err := st.Store.Blobs.Get(t.Context(), run.PublishedName("r1", "report.json")); err != nil || r.Close() != nil {
		t.Error(err)
	}
	for _, name := range []string{"../x", ".hidden", "a/../../x", ""} {
		if err := st.Store.Blobs.Put(t.Context(), run.PublishedName("r1", name), strings.NewReader("x")); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := st.Store.Blobs.Delete(t.Context(), run.PublishedName("r1", "report.json")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(PublishedPath(dir, "r1", "report.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there:", err)
	}
}
