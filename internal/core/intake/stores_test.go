package intake

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

func readerOf(b []byte) io.Reader { return bytes.NewReader(b) }

// forgetful is a table that forgets pages, so that a test sees the memory of sealing alone.
type forgetful struct{ table.Table }

func (forgetful) PutMany(ctx context.Context, items []table.Item) error { return ctx.Err() }

// onStores runs a story on every store.
func onStores(t *testing.T, story func(t *testing.T, st *store.Store)) {
	t.Run("memory", func(t *testing.T) {
		story(t, &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()})
	})
	t.Run("sqlite", func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		story(t, &store.Store{Table: db, Blobs: memory.NewBlobs()})
	})
}

func openText(t *testing.T, name, text string, opts Options) Source {
	t.Helper()
	src, err := Open(name, strings.NewReader(text), opts)
	if err != nil {
		t.Fatalf("Open(%s): %v", name, err)
	}
	return src
}
