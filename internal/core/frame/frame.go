// Package frame is the one envelope for stored bytes: a version, a checksum and zstd compression. A damaged or
// foreign payload is an error, never a wrong value.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// version 1: 0x5C, 1, CRC-32C of the plain bytes (big endian), zstd frame.
const (
	magic   = 0x5C
	version = 1
	header  = 6
)

// MaxPlain bounds what a frame may expand to, so that a damaged item cannot exhaust memory.
const MaxPlain = 64 << 20

// ErrDamaged: the payload is not a frame, is of an unknown version, or fails its checksum.
var ErrDamaged = errors.New("stored data is damaged")

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	encoder    = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)))
	fast = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<17), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxPlain),
		zstd.WithDecoderLowmem(true)))
)

// The coders build their pools at first use. That must not happen inside a test's bubble of fake time, whose channels
// cannot be used outside it.
func init() {
	for _, e := range []*zstd.Encoder{encoder, fast} {
		if _, err := decoder.DecodeAll(e.EncodeAll([]byte{0}, nil), nil); err != nil {
			panic(err) // what was just encoded can be decoded
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: cannot fail at run time
	}
	return v
}

// Seal compresses and frames b.
func Seal(b []byte) []byte { return seal(encoder, b) }

// SealFast is Seal with less effort, for small short-lived items.
func SealFast(b []byte) []byte { return seal(fast, b) }

func seal(e *zstd.Encoder, b []byte) []byte {
	dst := make([]byte, header, header+len(b)/3+64)
	dst[0], dst[1] = magic, version
	binary.BigEndian.PutUint32(dst[2:], crc32.Checksum(b, castagnoli))
	return e.EncodeAll(b, dst)
}

// Open returns the bytes that were sealed.
func Open(f []byte) ([]byte, error) {
	if len(f) < header || f[0] != magic {
		return nil, fmt.Errorf("%w: not a frame", ErrDamaged)
	}
	if f[1] != version {
		return nil, fmt.Errorf("%w: frame version %d is not known to this version of Sluice", ErrDamaged, f[1])
	}
	b, err := decoder.DecodeAll(f[header:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if crc32.Checksum(b, castagnoli) != binary.BigEndian.Uint32(f[2:]) {
		return nil, fmt.Errorf("%w: checksum differs", ErrDamaged)
	}
	return b, nil
}
