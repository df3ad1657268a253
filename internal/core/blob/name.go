package blob

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// MaxName is the longest name in bytes: the limit of S3 for object keys (1024), less room for a prefix.
const MaxName = 900

// MaxSegment is the longest segment of a name: the limit of common file systems (255), less room for a suffix.
const MaxSegment = 200

// CheckName is the validation that every store runs first. A segment must not start with a dot, which rules out "..",
// and leaves names for a store's own use.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%w: %.40q... has %d bytes, at most %d fit", ErrInvalid, name, len(name), MaxName)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment[0] == '.' || len(segment) > MaxSegment || strings.Trim(segment, allowed) != "" {
			return fmt.Errorf("%w: %q (want segments of A-Z a-z 0-9 . _ - that do not start with a dot)", ErrInvalid, name)
		}
	}
	return nil
}

const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// Reader returns a reader that fails once ctx is done, for stores that copy a Put's data.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
