package intake

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

// blocked is a table whose pages are written only once it is opened.
type blocked struct {
	table.Table
	gate chan struct{}
}

func (b *blocked) PutMany(ctx context.Context, items []table.Item) error {
	select {
	case <-b.gate:
		return b.Table.PutMany(ctx, items)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endless is a source of n rows of the same text, which counts what was taken.
type endless struct {
	n, text string
	rows    int64
	taken   atomic.Int64
	each    func(at int64)
}

func (s *endless) Columns() []string { return []string{"n", "text"} }
func (s *endless) Typed() bool       { return false }
func (s *endless) Next() (Row, error) {
	at := s.taken.Load()
	if at == s.rows {
		return Row{}, io.EOF
	}
	if s.each != nil {
		s.each(at)
	}
	s.taken.Add(1)
	return Row{Line: at + 2, Values: []any{s.n, s.text}}, nil
}

// A store that does not answer stops the source after a bounded number of bytes, and sealing goes on when it does.
func TestM4StoreHoldsTheSourceBack(t *testing.T) {
	const rowBytes, rows = 1000, 60_000 // 60 MB
	text := noise(rowBytes)
	synctest.Test(t, func(t *testing.T) {
		db := &blocked{memory.New(), make(chan struct{})}
		src := &endless{n: "1", text: text, rows: rows}
		var in Sealed
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			in, err = Seal(t.Context(), &store.Store{Table: db}, "r", src, Position(), SealOptions{})
		}()
		synctest.Wait()
		// In flight, and the draft that waits for its turn.
		if most := int64((inFlight + MaxPagePlain) / rowBytes); src.taken.Load() > most || src.taken.Load() < MaxPageRows {
			t.Errorf("%d rows were taken while nothing could be written; at most %d", src.taken.Load(), most)
		}
		close(db.gate)
		if <-done; err != nil || in.Rows != rows {
			t.Errorf("%+v %v", in, err)
		}
	})
}

// Sealing that waits for the store can be cancelled.
func TestM4WaitingForTheStoreIsCancelled(t *testing.T) {
	text := noise(1000)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		db := &blocked{memory.New(), make(chan struct{})}
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err = Seal(ctx, &store.Store{Table: db}, "r", &endless{n: "1", text: text, rows: 60_000}, Position(), SealOptions{})
		}()
		synctest.Wait()
		cancel()
		if <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// What is alive after 300,000 rows is what was alive after 50,000.
func TestM4MemoryDoesNotGrowWithRows(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	src := &endless{n: "1", text: "some text of a row", rows: 300_001, each: func(at int64) {
		switch at {
		case 50_000:
			early = live()
		case 300_000:
			late = live()
		}
	}}
	if _, err := Seal(t.Context(), &store.Store{Table: forgetful{memory.New()}}, "r", src, Position(), SealOptions{}); err != nil {
		t.Fatal(err)
	}
	const margin = 8 << 20 // pages in flight come and go; 250,000 rows are 6 MB of text and 12 MB as values
	if late > early+margin {
		t.Errorf("%d bytes were alive after 50,000 rows, %d after 300,000", early, late)
	}
}
