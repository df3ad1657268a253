package intake

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// The key index is split into segments by the first byte of the digest, and each grows alone by a quarter. So
// growing needs room for one segment twice, never for the whole index, and at most a fifth of it stands empty.
const (
	segments    = 256
	entryBytes  = 16 + 4 // digest and row number
	firstSize   = 16     // entries of a new segment
	maxLoad     = 0.9
	growth      = 1.25
	maxIndexRow = math.MaxUint32 - 1
)

// DefaultKeyBudget is the default bound of the key index: 128 MiB hold 5 to 6 million keys.
const DefaultKeyBudget = 128 << 20

// keyIndex is a set of digests with the number of the row that brought each. It keeps no keys (M3).
type keyIndex struct {
	budget int64
	bytes  int64
	keys   int64
	seg    [segments]segment
}

func newKeyIndex(opts SealOptions) *keyIndex {
	if opts.KeyBudget == 0 {
		return &keyIndex{budget: DefaultKeyBudget}
	}
	return &keyIndex{budget: opts.KeyBudget}
}

// segment is an open-addressing table. rows[i] is the row's number plus one; 0 is a free slot.
type segment struct {
	digests [][16]byte
	rows    []uint32
	used    int
}

// add records the digest for row, or returns the earlier row that has it.
func (x *keyIndex) add(d [16]byte, row int64) (first int64, dup bool, err error) {
	if row > maxIndexRow {
		return 0, false, fmt.Errorf("%w: the key index takes %d rows; use key: position, or split the source", ErrBudget, int64(maxIndexRow))
	}
	s := &x.seg[d[0]]
	if float64(s.used+1) > maxLoad*float64(len(s.rows)) {
		if i, found := s.find(d); found { // a duplicate needs no room
			return int64(s.rows[i]) - 1, true, nil
		}
		if err := x.grow(s, row); err != nil {
			return 0, false, err
		}
	}
	i, found := s.find(d)
	if found {
		return int64(s.rows[i]) - 1, true, nil
	}
	s.digests[i], s.rows[i] = d, uint32(row)+1
	s.used++
	x.keys++
	return row, false, nil
}

// find returns the slot of d, or the free one where it belongs. A segment is never full.
func (s *segment) find(d [16]byte) (int, bool) {
	n := len(s.rows)
	if n == 0 {
		return 0, false
	}
	// The slot is the digest's second word scaled to the size, which need not be a power of two.
	at, _ := bits.Mul64(binary.LittleEndian.Uint64(d[8:]), uint64(n))
	for i := int(at); ; {
		if s.rows[i] == 0 {
			return i, false
		}
		if s.digests[i] == d {
			return i, true
		}
		if i++; i == n {
			i = 0
		}
	}
}

func (x *keyIndex) grow(s *segment, row int64) error {
	size := max(firstSize, int(float64(len(s.rows))*growth))
	// The old segment is still there while the new one is filled.
	if need := x.bytes + int64(size)*entryBytes; need > x.budget {
		return fmt.Errorf("%w: the keys of the first %d rows take %d bytes and need %d, the budget is %d; "+
			"use key: position, split the source, or raise the budget", ErrBudget, row, x.bytes, need, x.budget)
	}
	old := *s
	*s = segment{digests: make([][16]byte, size), rows: make([]uint32, size), used: old.used}
	for i, r := range old.rows {
		if r != 0 {
			at, _ := s.find(old.digests[i])
			s.digests[at], s.rows[at] = old.digests[i], r
		}
	}
	x.bytes += int64(size-len(old.rows)) * entryBytes
	return nil
}
