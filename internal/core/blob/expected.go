package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Expected is what is known of an object before it is read.
type Expected struct {
	Size   int64  // bytes; 0: any
	SHA256 string // in hex; empty: any content
}

// ErrUnexpected: the content is another one than was announced.
var ErrUnexpected = errors.New("this is not the file that was announced")

// Check returns a reader of the same content that fails at its end, with ErrUnexpected, if its digest is another one. So whoever
// keeps only what was read to its end keeps nothing else.
func (e Expected) Check(r io.Reader) io.Reader {
	if e.SHA256 == "" {
		return r
	}
	return &checked{r: r, sum: sha256.New(), want: e.SHA256}
}

type checked struct {
	r    io.Reader
	sum  hash.Hash
	want string
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n]) // it never fails
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.want {
			err = fmt.Errorf("%w: its SHA-256 is %s, and not %s", ErrUnexpected, got, c.want)
		}
	}
	return n, err
}
