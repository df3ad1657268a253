// Package blob is the port for what is too large for a table item: oversized rows and cells, uploads, exports.
// Names are slash-separated paths of [A-Za-z0-9._-] segments; objects are written whole and never changed in place.
package blob

import (
	"context"
	"errors"
	"io"
)

// ErrNotFound: there is no object of that name.
var ErrNotFound = errors.New("blob: no such object")

// Store keeps objects. A Put that returns nil is durable and visible at once, whole; one that fails leaves no part
// of the object visible. Putting the same name again replaces the object.
type Store interface {
	Put(ctx context.Context, name string, data io.Reader) error
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
}
