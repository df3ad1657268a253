// Package store joins the two storage ports: a value that fits a table item is kept in it, a larger one goes to the
// blob store and the item holds a reference with its digest. It owns that choice and its verification; it refuses to
// return bytes that are not the bytes that were saved.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"sluice/internal/core/blob"
	"sluice/internal/core/table"
)

// ErrDamaged: the object that an item refers to is missing, or is not the one that was saved.
var ErrDamaged = errors.New("store: a stored value is damaged")

// The first byte of an item's data says where the value is.
const (
	inline    = 'I' // the rest is the value
	reference = 'R' // the rest is "<length> <sha-256 in hex>" of the value in the blob store
)

// Store keeps values of any size under table keys. Blobs may be nil where values are known to fit an item; a value
// that does not fit is then table.ErrTooLarge.
type Store struct {
	Table table.Table
	Blobs blob.Store
	// Meter counts what the table is asked, where one invocation at a time uses this store: what it does is then booked
	// to the run that it is done for. Nil where processes or shards share it, and somebody else books, or nobody.
	Meter *table.Metered
}

// Entry is one value to save.
type Entry struct {
	Key     table.Key
	Version int64
	Value   []byte
	Expires time.Time // as in table.Item; the object of a large value stays
}

// Save writes value under key if cond holds. Errors are those of table.Table.Put. A large value is durable in the
// blob store before its item refers to it. Replacing one large value by another leaves the old object behind, so
// that a reader between its item and its object still finds what it was promised; Delete removes the current one.
func (s *Store) Save(ctx context.Context, key table.Key, version int64, value []byte, cond table.If) error {
	return s.SaveEntry(ctx, Entry{Key: key, Version: version, Value: value}, cond)
}

// SaveEntry is Save for an entry that may expire.
func (s *Store) SaveEntry(ctx context.Context, e Entry, cond table.If) error {
	item, err := s.item(ctx, e)
	if err != nil {
		return err
	}
	return s.Table.Put(ctx, item, cond)
}

// SaveMany writes the entries unconditionally, in any order; after an error any subset may have been written.
func (s *Store) SaveMany(ctx context.Context, entries []Entry) error {
	items := make([]table.Item, len(entries))
	for i, e := range entries {
		var err error
		if items[i], err = s.item(ctx, e); err != nil {
			return err
		}
	}
	return s.Table.PutMany(ctx, items)
}

func (s *Store) item(ctx context.Context, e Entry) (table.Item, error) {
	it := table.Item{Key: e.Key, Version: e.Version, Expires: e.Expires}
	if len(e.Key.Part)+len(e.Key.Sort)+1+len(e.Value) <= table.MaxItem || s.Blobs == nil {
		it.Data = append(append(make([]byte, 0, 1+len(e.Value)), inline), e.Value...)
		return it, nil
	}
	sum := sha256.Sum256(e.Value)
	digest := hex.EncodeToString(sum[:])
	if err := s.Blobs.Put(ctx, blobName(e.Key, digest), bytes.NewReader(e.Value)); err != nil {
		return it, fmt.Errorf("store: large value of %s: %w", e.Key, err)
	}
	it.Data = fmt.Appendf(nil, "%c%d %s", reference, len(e.Value), digest)
	return it, nil
}

// Load returns the value and its version, table.ErrNotFound if there is none, ErrDamaged if its object is missing
// or differs from what was saved.
func (s *Store) Load(ctx context.Context, key table.Key) ([]byte, int64, error) {
	it, err := s.Table.Get(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	value, err := s.Open(ctx, it)
	return value, it.Version, err
}

// Open returns the value of an item that the caller has read itself, for instance with Query or GetMany.
func (s *Store) Open(ctx context.Context, it table.Item) ([]byte, error) {
	if len(it.Data) == 0 {
		return nil, fmt.Errorf("%w: %s is empty", ErrDamaged, it.Key)
	}
	switch it.Data[0] {
	case inline:
		return it.Data[1:], nil
	case reference:
		return s.fetch(ctx, it)
	}
	return nil, fmt.Errorf("%w: %s has an unknown tag 0x%02x", ErrDamaged, it.Key, it.Data[0])
}

func (s *Store) fetch(ctx context.Context, it table.Item) ([]byte, error) {
	size, digest, err := parseReference(it)
	if err != nil {
		return nil, err
	}
	if s.Blobs == nil {
		return nil, fmt.Errorf("%w: %s is in a blob store, and none is configured", ErrDamaged, it.Key)
	}
	r, err := s.Blobs.Get(ctx, blobName(it.Key, digest))
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w: the object of %s is gone: %w", ErrDamaged, it.Key, err)
	}
	if err != nil {
		return nil, fmt.Errorf("store: large value of %s: %w", it.Key, err)
	}
	defer r.Close()
	// One byte more than promised, so that a longer object is seen without being read whole.
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, io.LimitReader(r, size+1)); err != nil {
		return nil, fmt.Errorf("store: large value of %s: %w", it.Key, err)
	}
	sum := sha256.Sum256(buf.Bytes())
	if int64(buf.Len()) != size || hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%w: the object of %s differs from what was saved", ErrDamaged, it.Key)
	}
	return buf.Bytes(), nil
}

// Delete removes the item if cond holds, and then the object that it referred to. It is Table.Delete otherwise.
func (s *Store) Delete(ctx context.Context, key table.Key, cond table.If) error {
	it, err := s.Table.Get(ctx, key)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return err
	}
	if err := s.Table.Delete(ctx, key, cond); err != nil {
		return err
	}
	if s.Blobs == nil || len(it.Data) == 0 || it.Data[0] != reference {
		return nil
	}
	_, digest, err := parseReference(it)
	if err != nil {
		return nil // damaged, and deleted now
	}
	if err := s.Blobs.Delete(ctx, blobName(key, digest)); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("store: large value of %s: %w", key, err)
	}
	return nil
}

func parseReference(it table.Item) (size int64, digest string, err error) {
	length, digest, ok := strings.Cut(string(it.Data[1:]), " ")
	size, err = strconv.ParseInt(length, 10, 64)
	if !ok || err != nil || size < 0 || len(digest) != 2*sha256.Size {
		return 0, "", fmt.Errorf("%w: %s has a malformed reference", ErrDamaged, it.Key)
	}
	return size, digest, nil
}

// blobName is made from the key and the content: equal values of two keys are two objects, so that deleting one
// never takes the other's; saving the same value again replaces the object by itself.
func blobName(key table.Key, digest string) string {
	part, sort := sha256.Sum256([]byte(key.Part)), sha256.Sum256([]byte(key.Sort))
	return "values/" + hex.EncodeToString(part[:12]) + "/" + hex.EncodeToString(sort[:12]) + "/" + digest
}

// Used is what the table was asked so far, as far as that can be said of one invocation; see Meter.
func (s *Store) Used() table.Usage {
	if s.Meter == nil {
		return table.Usage{}
	}
	return s.Meter.Usage()
}
