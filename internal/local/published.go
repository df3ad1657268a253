package local

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"sluice/internal/core/blob"
	"sluice/internal/core/run"
)

// publishedDir is where people find what their runs have published, by run and name.
const publishedDir = "published"

// PublishedPath is the file that holds what a run has published under a name.
func PublishedPath(dir, id, name string) string { return filepath.Join(dir, publishedDir, id, name) }

// places is a blob store that keeps what is published apart from what is the engine's own.
type places struct{ own, published blob.Store }

func (p places) of(name string) (blob.Store, string) {
	if rest, ok := strings.CutPrefix(name, run.Published); ok {
		return p.published, rest
	}
	return p.own, name
}

// Put implements blob.Store.
func (p places) Put(ctx context.Context, name string, data io.Reader) error {
	st, name := p.of(name)
	return st.Put(ctx, name, data)
}

// Get implements blob.Store.
func (p places) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	st, name := p.of(name)
	return st.Get(ctx, name)
}

// Delete implements blob.Store.
func (p places) Delete(ctx context.Context, name string) error {
	st, name := p.of(name)
	return st.Delete(ctx, name)
}
