package main

import (
	"fmt"
	"strings"
)

const filler = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// payload is what the provider answers to one call: it names its row and call, so that a stored result can be told from
// any other. It is plain ASCII, so that nobody pays for escaping it.
func payload(row, call, size int) string {
	head := fmt.Sprintf("r%dc%d:", row, call)
	if len(head) >= size {
		return head
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(head)
	for b.Len() < size {
		b.WriteString(filler[:min(len(filler), size-b.Len())])
	}
	return b.String()
}

// tally checks what a contender stored: each result exactly once, byte for byte.
type tally struct {
	load Load
	seen []bool
	n    int
}

func newTally(load Load) *tally {
	return &tally{load: load, seen: make([]bool, load.total())}
}

// add takes one stored result, in any order.
func (t *tally) add(stored string) error {
	var row, call int
	if _, err := fmt.Sscanf(stored, "r%dc%d:", &row, &call); err != nil {
		return fmt.Errorf("stored result %.40q is not one of the provider's answers", stored)
	}
	if row < 0 || row >= t.load.Rows || call < 0 || call >= t.load.Calls {
		return fmt.Errorf("stored result of row %d, call %d, which was never asked for", row, call)
	}
	if want := payload(row, call, t.load.Bytes); stored != want {
		return fmt.Errorf("row %d, call %d: stored %d bytes that differ from the provider's %d", row, call, len(stored), len(want))
	}
	at := row*t.load.Calls + call
	if t.seen[at] {
		return fmt.Errorf("row %d, call %d: stored twice", row, call)
	}
	t.seen[at] = true
	t.n++
	return nil
}

// complete fails if a result is missing.
func (t *tally) complete() error {
	if t.n == t.load.total() {
		return nil
	}
	for at, seen := range t.seen {
		if !seen {
			return fmt.Errorf("%d of %d results are missing, the first of them row %d, call %d",
				t.load.total()-t.n, t.load.total(), at/t.load.Calls, at%t.load.Calls)
		}
	}
	return nil
}
