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

// ErrInvalid: the name is not one that a store takes; nothing was done.
var ErrInvalid = errors.New("blob: invalid name")

// Store keeps objects. A Put that returns nil is durable and visible at once, whole; one that fails leaves no part
// of the object visible. Putting the same name again replaces the object.
type Store interface {
	Put(ctx context.Context, name string, data io.Reader) error
	// Get opens an object; the caller closes it. It reads the object as it was when it was opened.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete of what is not there succeeds.
	Delete(ctx context.Context, name string) error
}
