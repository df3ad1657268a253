package intake

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// blockSize is the unit in which a source is read and digested. Blocks are always filled, so that what has been read
// after n rows, and with it the digest under a limit, does not depend on how the reader cuts its answers.
const blockSize = 64 << 10

// digested reads whole blocks and digests the raw bytes as they pass.
type digested struct {
	r   io.Reader
	sum hash.Hash
	buf []byte // what was read and not yet handed out
	mem []byte
	err error
}

func newDigested(r io.Reader) *digested {
	return &digested{r: r, sum: sha256.New(), mem: make([]byte, blockSize)}
}

func (d *digested) Read(p []byte) (int, error) {
	if len(d.buf) == 0 {
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.buf)
	d.buf = d.buf[n:]
	return n, nil
}

// fill reads the next block; after a short one, the error is kept for the next call.
func (d *digested) fill() error {
	if d.err != nil {
		return d.err
	}
	n, err := io.ReadFull(d.r, d.mem)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	d.err = err
	d.buf = d.mem[:n]
	_, _ = d.sum.Write(d.buf) // a hash never fails
	if n == 0 {
		return err
	}
	return nil
}

// peek returns the beginning of the source without consuming it. It is called before the first Read.
func (d *digested) peek() ([]byte, error) {
	if len(d.buf) == 0 {
		if err := d.fill(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return d.buf, nil
}

func (d *digested) digest() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// text is a reader of valid UTF-8 without NUL and without a byte order mark: everything after it may rely on that. It
// gives out what is valid before it reports what is not, so the first mistake of a file is the one that is named.
type text struct {
	name    string
	r       io.Reader
	decoded bool   // from another encoding: U+FFFD marks bytes that it does not define
	label   string // of that encoding
	eol     byte
	line    int64 // of the first byte that is not yet checked
	column  int64 // characters before it on that line
	start   bool
	mem     []byte
	out     []byte  // checked, not yet handed out; points into mem
	carry   [4]byte // an incomplete character at the end of the last block
	carried int
	err     error
}

func newText(name string, r io.Reader, enc encoding.Encoding, label string) *text {
	t := &text{name: name, r: r, eol: '\n', line: 1, start: true, mem: make([]byte, blockSize)}
	if enc != nil {
		t.r, t.decoded, t.label = enc.NewDecoder().Reader(r), true, label
	}
	return t
}

func (t *text) Read(p []byte) (int, error) {
	for len(t.out) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.fill()
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	return n, nil
}

// peek returns the first checked bytes without consuming them.
func (t *text) peek() []byte {
	for len(t.out) == 0 && t.err == nil {
		t.fill()
	}
	return t.out
}

// fill checks the next block; out must be used up.
func (t *text) fill() {
	copy(t.mem, t.carry[:t.carried])
	n, err := io.ReadFull(t.r, t.mem[t.carried:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	b := t.mem[:t.carried+n]
	t.carried = 0
	if err == nil {
		t.carried = copy(t.carry[:], b[len(b)-incomplete(b):])
		b = b[:len(b)-t.carried]
	} else if !errors.Is(err, io.EOF) {
		err = &PosError{Name: t.name, Msg: "cannot be read", Err: err}
	}
	if t.start && len(b) > 0 {
		t.start = false
		b = bytes.TrimPrefix(b, []byte("\uFEFF"))
		if bytes.IndexByte(b, '\n') < 0 && returnsOutsideQuotes(b) {
			t.eol = '\r' // as old Macs wrote
		}
	}
	t.err = err
	var bad error
	if t.out, bad = t.check(b); bad != nil {
		t.err = bad
	}
}

func returnsOutsideQuotes(b []byte) bool {
	quoted := false
	for _, c := range b {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\r' && !quoted:
			return true
		}
	}
	return false
}

// check returns the valid beginning of b and the error that ends it, and moves the position past it.
func (t *text) check(b []byte) ([]byte, error) {
	end, msg := len(b), ""
	if !utf8.Valid(b) {
		end, msg = invalidAt(b), "invalid UTF-8 here; if the file has another encoding, pass --encoding (for instance --encoding windows-1252)"
	}
	if i := bytes.IndexByte(b[:end], 0); i >= 0 {
		end, msg = i, "a NUL byte; if the file is UTF-16, pass --encoding utf-16le or utf-16be, otherwise remove the byte"
	}
	if t.decoded {
		if i := bytes.Index(b[:end], []byte("\uFFFD")); i >= 0 {
			end, msg = i, "these bytes are not valid "+t.label+"; pass the right --encoding"
		}
	}
	good := b[:end]
	t.line += int64(bytes.Count(good, []byte{t.eol}))
	if i := bytes.LastIndexByte(good, t.eol); i >= 0 {
		t.column = int64(utf8.RuneCount(good[i+1:]))
	} else {
		t.column += int64(utf8.RuneCount(good))
	}
	if msg == "" {
		return good, nil
	}
	return good, &PosError{Name: t.name, Line: t.line, Column: t.column + 1, Msg: msg}
}

// invalidAt is the offset of the first byte that is not part of a valid character.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// incomplete is the number of bytes at the end of b that begin a character without ending it.
func incomplete(b []byte) int {
	for n := 1; n <= 3 && n <= len(b); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
