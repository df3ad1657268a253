package memory

import (
	"iter"
	"slices"
	"strings"
)

// entry is one stored item of a partition.
type entry struct {
	sort    string
	version int64
	expires int64 // Unix seconds, 0 is never
	data    []byte
}

// chunkSize is a compromise between the cost of an insert in the middle (which moves half a chunk) and the length of
// the list of chunks.
const chunkSize = 256

// sorted is an ordered map of sort keys: a list of chunks, each a sorted slice of 1 to chunkSize entries. It is a B-tree
// of two levels, which stays fast far beyond what fits in memory, and appends in order without moving anything.
type sorted struct{ chunks [][]entry }

func (s *sorted) empty() bool { return len(s.chunks) == 0 }

// find returns the position of key, or the position at which it belongs. The chunk is len(s.chunks) only if s is empty.
func (s *sorted) find(key string) (chunk, at int, found bool) {
	n := len(s.chunks)
	if n == 0 {
		return 0, 0, false
	}
	chunk = n - 1
	if key < s.chunks[n-1][0].sort { // appends in order skip the search
		chunk, found = slices.BinarySearchFunc(s.chunks, key, func(c []entry, key string) int {
			return strings.Compare(c[0].sort, key)
		})
		if !found && chunk > 0 {
			chunk--
		}
	}
	c := s.chunks[chunk]
	if c[len(c)-1].sort < key {
		return chunk, len(c), false
	}
	at, found = slices.BinarySearchFunc(c, key, func(e entry, key string) int { return strings.Compare(e.sort, key) })
	return chunk, at, found
}

func (s *sorted) get(key string) *entry {
	chunk, at, found := s.find(key)
	if !found {
		return nil
	}
	return &s.chunks[chunk][at]
}

func (s *sorted) put(e entry) {
	chunk, at, found := s.find(e.sort)
	switch {
	case found:
		s.chunks[chunk][at] = e
	case s.empty(), len(s.chunks[chunk]) == chunkSize && at == chunkSize:
		// Behind a full chunk a new one starts: keys that come in order fill every chunk.
		fresh := append(make([]entry, 0, 8), e)
		s.chunks = slices.Insert(s.chunks, min(chunk+1, len(s.chunks)), fresh)
	default:
		if len(s.chunks[chunk]) == chunkSize {
			s.split(chunk)
			chunk, at, _ = s.find(e.sort)
		}
		s.chunks[chunk] = slices.Insert(s.chunks[chunk], at, e)
	}
}

func (s *sorted) split(chunk int) {
	c := s.chunks[chunk]
	upper := append(make([]entry, 0, chunkSize), c[chunkSize/2:]...)
	clear(c[chunkSize/2:])
	s.chunks[chunk] = c[:chunkSize/2]
	s.chunks = slices.Insert(s.chunks, chunk+1, upper)
}

func (s *sorted) remove(key string) {
	chunk, at, found := s.find(key)
	if !found {
		return
	}
	s.chunks[chunk] = slices.Delete(s.chunks[chunk], at, at+1)
	if len(s.chunks[chunk]) == 0 {
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
	}
}

// span is the part of a partition that a query still has to read: [from, to), an empty to has no bound.
type span struct {
	from, to string
	reverse  bool
}

// pass moves the span behind key.
func (c *span) pass(key string) {
	if c.reverse {
		c.to = key
	} else {
		c.from = key + "\x00" // the smallest key that is greater
	}
}

// scan yields the entries of a span in order. The partition must not change meanwhile.
func (s *sorted) scan(c span) iter.Seq[*entry] {
	if c.reverse {
		return s.backward(c)
	}
	return func(yield func(*entry) bool) {
		chunk, at, _ := s.find(c.from)
		for ; chunk < len(s.chunks); chunk, at = chunk+1, 0 {
			for i := at; i < len(s.chunks[chunk]); i++ {
				e := &s.chunks[chunk][i]
				if c.to != "" && e.sort >= c.to || !yield(e) {
					return
				}
			}
		}
	}
}

func (s *sorted) backward(c span) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if s.empty() {
			return
		}
		chunk := len(s.chunks) - 1
		at := len(s.chunks[chunk])
		if c.to != "" {
			chunk, at, _ = s.find(c.to)
		}
		for {
			for i := at - 1; i >= 0; i-- {
				e := &s.chunks[chunk][i]
				if e.sort < c.from || !yield(e) {
					return
				}
			}
			if chunk--; chunk < 0 {
				return
			}
			at = len(s.chunks[chunk])
		}
	}
}
