package intake

import (
	"bytes"
	"errors"
	"io"
)

// buffer holds the part of a text that is being parsed. A record that it does not hold whole yet is tried again
// after more; the size doubles, so a long record is looked at a bounded number of times.
type buffer struct {
	t    *text
	mem  []byte
	r, w int
	err  error // why there is no more
}

func newBuffer(t *text) *buffer { return &buffer{t: t, mem: make([]byte, 2*blockSize)} }

// pending is what has been read and not consumed.
func (b *buffer) pending() []byte { return b.mem[b.r:b.w] }

func (b *buffer) consume(n int) { b.r += n }

// errLong: a record is longer than MaxRecord.
var errLong = errors.New("record too long")

// more reads further. It returns io.EOF, errLong or the text's error if it cannot.
func (b *buffer) more() error {
	if b.err != nil {
		return b.err
	}
	if b.r > 0 {
		b.w = copy(b.mem, b.mem[b.r:b.w])
		b.r = 0
	}
	if b.w == len(b.mem) {
		if b.w >= MaxRecord {
			return errLong
		}
		grown := make([]byte, min(2*len(b.mem), MaxRecord))
		copy(grown, b.mem)
		b.mem = grown
	}
	n, err := b.t.Read(b.mem[b.w:])
	b.w += n
	b.err = err
	if n > 0 {
		return nil
	}
	return err
}

// line returns the next line with its end; the last one may lack it. At the end of the text it is io.EOF. The
// line is not consumed.
func (b *buffer) line() ([]byte, error) {
	seen := 0
	for {
		p := b.pending()
		if i := bytes.IndexByte(p[seen:], b.t.eol); i >= 0 {
			return p[:seen+i+1], nil
		}
		seen = len(p)
		if err := b.more(); err != nil {
			if errors.Is(err, io.EOF) && seen > 0 {
				return b.pending(), nil
			}
			return nil, err
		}
	}
}
