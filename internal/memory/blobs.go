package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"sluice/internal/core/blob"
)

// Blobs is a blob.Store in memory.
type Blobs struct {
	mu      sync.RWMutex
	objects map[string][]byte
}

var _ blob.Store = (*Blobs)(nil)

// NewBlobs returns an empty store.
func NewBlobs() *Blobs { return &Blobs{objects: map[string][]byte{}} }

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, name string, data io.Reader) error {
	if err := first(ctx.Err(), blob.CheckName(name)); err != nil {
		return err
	}
	content, err := io.ReadAll(blob.Reader(ctx, data))
	if err != nil {
		return fmt.Errorf("blob %s: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[name] = content
	return nil
}

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := first(ctx.Err(), blob.CheckName(name)); err != nil {
		return nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	content, ok := b.objects[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", blob.ErrNotFound, name)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// Delete implements blob.Store.
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := first(ctx.Err(), blob.CheckName(name)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, name)
	return nil
}
