// Package table is the storage port: a small key-value contract that DynamoDB, SQLite and plain memory can all
// keep. It owns keys, versions, conditions and errors; it refuses transactions: every decision that must be atomic
// lives in one item, and what spans items is idempotent and ordered by its caller.
//
// The contract that an adapter must keep is the suite in tabletest.
package table

import (
	"context"
	"errors"
	"iter"
	"time"
	"unicode/utf8"
)

// MaxItem is the largest item (both keys plus data, in bytes) that any adapter takes. DynamoDB refuses items over
// 400 KB (Service quotas, "Item size"); the margin leaves room for attribute names and the version. Every adapter
// refuses at the same size, so that a laptop finds what the cloud would refuse.
const MaxItem = 390 * 1024

// MaxPart and MaxSort are DynamoDB's limits for partition and sort keys, in bytes.
const (
	MaxPart = 2048
	MaxSort = 1024
)

var (
	// ErrNotFound: no item (or an expired one) under that key.
	ErrNotFound = errors.New("table: no such item")
	// ErrConflict: the condition did not hold; nothing was written.
	ErrConflict = errors.New("table: condition not met")
	// ErrTooLarge: the item is over MaxItem; nothing was written.
	ErrTooLarge = errors.New("table: item too large")
	// ErrInvalid: the key is empty, too long or not UTF-8; nothing was written.
	ErrInvalid = errors.New("table: invalid key")
)

// Key names one item: items of one Part are ordered by Sort (bytewise).
type Key struct{ Part, Sort string }

func (k Key) String() string { return k.Part + " " + k.Sort }

// Item is what is stored. Version is chosen by the writer (by habit the previous version plus one; at least 1).
// Expires hides the item from every read from that moment on, whenever it is physically removed; zero is never.
// Expiry has whole seconds, rounded up.
type Item struct {
	Key
	Version int64
	Data    []byte
	Expires time.Time
}

// Size is what counts against MaxItem.
func (i Item) Size() int { return len(i.Part) + len(i.Sort) + len(i.Data) }

// If is the condition of a conditional write. The zero If is unconditional.
type If struct{ kind, version int64 }

// Always writes whatever is stored.
func Always() If { return If{} }

// Absent writes only if there is no item (an expired one counts as none).
func Absent() If { return If{kind: 1} }

// VersionIs writes only if the stored item has this version.
func VersionIs(v int64) If { return If{kind: 2, version: v} }

// Unconditional, WantsAbsent and WantsVersion let adapters read a condition.
func (c If) Unconditional() bool { return c.kind == 0 }

// WantsAbsent reports whether the condition is Absent.
func (c If) WantsAbsent() bool { return c.kind == 1 }

// WantsVersion returns the version asked for by VersionIs.
func (c If) WantsVersion() (int64, bool) { return c.version, c.kind == 2 }

// Query selects items of one partition whose sort key is in [From, To); an empty To has no upper bound.
type Query struct {
	Part     string
	From, To string
	Reverse  bool // from the end
	Limit    int  // 0: all
}

// Prefix selects the items of a partition whose sort key starts with prefix.
func Prefix(part, prefix string) Query {
	return Query{Part: part, From: prefix, To: after(prefix)}
}

// after is the smallest key that is greater than every key with this prefix, or "" if there is none. It stays valid
// UTF-8 (a store may refuse anything else), so it steps the last rune and not the last byte.
func after(prefix string) string {
	for prefix != "" {
		r, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		switch {
		case r == surrogateMin-1:
			return prefix + string(rune(surrogateMax+1))
		case r < utf8.MaxRune:
			return prefix + string(r+1)
		}
	}
	return ""
}

// The range of code points that UTF-8 does not have.
const surrogateMin, surrogateMax = 0xD800, 0xDFFF

// Table is the port. All reads are strongly consistent. All methods honour ctx: once it is done, no further effect
// starts, and an operation that had not started leaves no effect. Implementations are safe for concurrent use and
// never retain or modify a caller's Data; what they return is the caller's own.
//
// An invalid key, in a read as in a write, is ErrInvalid; so is a query whose Part is not a valid one. A query with From
// at or after To selects nothing.
//
// A write that returns nil is durable. A write that returns ErrConflict, ErrTooLarge or ErrInvalid had no effect.
// Any other error leaves open whether the write happened: the caller reads again, or repeats an idempotent write.
// Adapters retry throttling and busy stores themselves, callers do not.
type Table interface {
	Get(ctx context.Context, key Key) (Item, error)
	// GetMany returns the items that exist, in no particular order; duplicates in keys are answered once.
	GetMany(ctx context.Context, keys []Key) ([]Item, error)
	// Query yields items in order; after an error it stops. Breaking off early costs no further reads. It is not
	// a snapshot: writes made meanwhile may or may not be seen.
	Query(ctx context.Context, q Query) iter.Seq2[Item, error]
	Put(ctx context.Context, item Item, cond If) error
	// PutMany writes unconditionally, in any order, so keys must be distinct. After ErrTooLarge or ErrInvalid nothing
	// was written; after any other error any subset may have been.
	PutMany(ctx context.Context, items []Item) error
	// Delete removes the item if the condition holds (Absent on a stored item is ErrConflict). Delete of what is not there succeeds under Always and Absent and is ErrConflict under VersionIs.
	Delete(ctx context.Context, key Key, cond If) error
}
