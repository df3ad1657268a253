package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/core/blob"
	"sluice/internal/core/table"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// objects is a blob store that can be looked into.
type objects struct {
	blob.Store
	names map[string]bool
	fail  error
}

func newObjects() *objects { return &objects{Store: memory.NewBlobs(), names: map[string]bool{}} }

func (o *objects) Put(ctx context.Context, name string, r io.Reader) error {
	if o.fail != nil {
		return o.fail
	}
	o.names[name] = true
	return o.Store.Put(ctx, name, r)
}

func (o *objects) Delete(ctx context.Context, name string) error {
	delete(o.names, name)
	return o.Store.Delete(ctx, name)
}

func onStores(t *testing.T, story func(t *testing.T, s *Store, o *objects)) {
	t.Run("memory", func(t *testing.T) {
		o := newObjects()
		story(t, &Store{Table: memory.New(), Blobs: o}, o)
	})
	t.Run("sqlite", func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		o := newObjects()
		story(t, &Store{Table: db, Blobs: o}, o)
	})
}

var key = table.Key{Part: "run/é 1", Sort: "p/1"}

func TestValuesOfEverySize(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, o *objects) {
		fits := table.MaxItem - len(key.Part) - len(key.Sort) - 1
		for i, size := range []int{0, 1, fits - 1, fits, fits + 1, 3 << 20} {
			value := bytes.Repeat([]byte{'R'}, size) // also the tag of a reference
			if err := s.Save(t.Context(), key, int64(i+1), value, table.Always()); err != nil {
				t.Fatal(err)
			}
			got, version, err := s.Load(t.Context(), key)
			if err != nil || version != int64(i+1) || !bytes.Equal(got, value) {
				t.Errorf("%d bytes: %d came back, version %d, %v", size, len(got), version, err)
			}
			if wantObjects := max(0, i-3); len(o.names) != wantObjects {
				t.Errorf("%d bytes: %d objects, want %d", size, len(o.names), wantObjects)
			}
		}
	})
}

func TestSaveManyMixesSizes(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, o *objects) {
		var entries []Entry
		for i := range 30 {
			size := i
			if i%10 == 0 {
				size = 500_000
			}
			entries = append(entries, Entry{Key: table.Key{Part: "p", Sort: fmt.Sprintf("%02d", i)}, Version: 1, Value: bytes.Repeat([]byte{byte(i)}, size)})
		}
		if err := s.SaveMany(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
		n := 0
		for it, err := range s.Table.Query(t.Context(), table.Query{Part: "p"}) {
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Open(t.Context(), it); err != nil || !bytes.Equal(got, entries[n].Value) {
				t.Errorf("%s: %d bytes, %v", it.Key, len(got), err)
			}
			n++
		}
		if n != 30 || len(o.names) != 3 {
			t.Errorf("%d items, %d objects", n, len(o.names))
		}
	})
}

func TestConditionsHold(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, _ *objects) {
		big, small := bytes.Repeat([]byte("b"), 500_000), []byte("s")
		if err := s.Save(t.Context(), key, 1, big, table.Absent()); err != nil {
			t.Fatal(err)
		}
		for _, value := range [][]byte{big, small} {
			if err := s.Save(t.Context(), key, 2, value, table.Absent()); !errors.Is(err, table.ErrConflict) {
				t.Errorf("absent: %v", err)
			}
			if err := s.Save(t.Context(), key, 3, value, table.VersionIs(2)); !errors.Is(err, table.ErrConflict) {
				t.Errorf("version: %v", err)
			}
		}
		// The refused writes of the same value took nothing away.
		if got, version, err := s.Load(t.Context(), key); err != nil || version != 1 || !bytes.Equal(got, big) {
			t.Errorf("%d bytes, version %d, %v", len(got), version, err)
		}
		if err := s.Delete(t.Context(), key, table.VersionIs(9)); !errors.Is(err, table.ErrConflict) {
			t.Errorf("delete: %v", err)
		}
		if got, _, err := s.Load(t.Context(), key); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestDeleteTakesItsOwnObjectOnly(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, o *objects) {
		big, twin := bytes.Repeat([]byte("b"), 500_000), table.Key{Part: key.Part, Sort: "p/2"}
		for _, k := range []table.Key{key, twin} {
			if err := s.Save(t.Context(), k, 1, big, table.Always()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Delete(t.Context(), key, table.Always()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Load(t.Context(), key); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("deleted: %v", err)
		}
		if got, _, err := s.Load(t.Context(), twin); err != nil || !bytes.Equal(got, big) {
			t.Errorf("its twin: %v", err)
		}
		if len(o.names) != 1 {
			t.Errorf("%d objects", len(o.names))
		}
		if err := s.Delete(t.Context(), key, table.Always()); err != nil {
			t.Errorf("deleting nothing: %v", err)
		}
	})
}

func TestH8DamagedObjectsAreNotReturned(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, o *objects) {
		big := bytes.Repeat([]byte("b"), 500_000)
		if err := s.Save(t.Context(), key, 1, big, table.Always()); err != nil {
			t.Fatal(err)
		}
		var name string
		for name = range o.names {
		}
		for what, content := range map[string]string{"shorter": "b", "longer": string(big) + "b", "other": strings.Repeat("c", len(big))} {
			if err := o.Put(t.Context(), name, strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Load(t.Context(), key); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := o.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Load(t.Context(), key); !errors.Is(err, ErrDamaged) || !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("gone: %v", err)
		}
		for _, data := range []string{"", "X", "R", "R12", "Rx 00", "R-1 " + strings.Repeat("0", 64), "R1 ../../etc"} {
			it := table.Item{Key: key, Version: 1, Data: []byte(data)}
			if _, err := s.Open(t.Context(), it); !errors.Is(err, ErrDamaged) {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}

// The object is there before the item that refers to it: if it cannot be written, nothing changes.
func TestFailedObjectLeavesTheOldValue(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store, o *objects) {
		if err := s.Save(t.Context(), key, 1, []byte("old"), table.Always()); err != nil {
			t.Fatal(err)
		}
		o.fail = errors.New("bucket is gone")
		if err := s.Save(t.Context(), key, 2, make([]byte, 500_000), table.Always()); !errors.Is(err, o.fail) {
			t.Errorf("got %v", err)
		}
		if got, version, err := s.Load(t.Context(), key); string(got) != "old" || version != 1 || err != nil {
			t.Errorf("%q %d %v", got, version, err)
		}
	})
}

func TestWithoutABlobStore(t *testing.T) {
	s := &Store{Table: memory.New()}
	if err := s.Save(t.Context(), key, 1, make([]byte, 500_000), table.Always()); !errors.Is(err, table.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	it := table.Item{Key: key, Version: 1, Data: []byte("R1 " + strings.Repeat("0", 64))}
	if _, err := s.Open(t.Context(), it); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}
