package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"sluice/internal/core/table"
)

func TestFullDiskFailsTheGroupAndNothingElse(t *testing.T) {
	tab := openAt(t, filepath.Join(t.TempDir(), "state.db"))
	limit := func(pages int) {
		t.Helper()
		if err := tab.queue.submit(t.Context(), 0, func(c *conn, _ int64) error {
			_, err := c.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Put(t.Context(), item1("before"), table.Always()); err != nil {
		t.Fatal(err)
	}
	limit(20)
	big := item1("big")
	big.Data = make([]byte, 300_000)
	if err := tab.Put(t.Context(), big, table.Always()); err == nil || !strings.Contains(err.Error(), "no space is left") {
		t.Errorf("got %v", err)
	}
	if _, err := tab.Get(t.Context(), big.Key); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("a failed write was stored: %v", err)
	}
	limit(100_000)
	if err := tab.Put(t.Context(), big, table.Absent()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := tab.Get(t.Context(), item1("before").Key); err != nil {
		t.Errorf("an earlier write: %v", err)
	}
}

func TestFailedStatementUndoesItsGroup(t *testing.T) {
	tab := openAt(t, filepath.Join(t.TempDir(), "state.db"))
	err := tab.queue.submit(t.Context(), 0, func(c *conn, now int64) error {
		if err := c.put(item1("a"), table.Always(), now); err != nil {
			return err
		}
		_, err := c.exec("DELETE FROM nowhere")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "state.db: SQL logic error: no such table: nowhere") {
		t.Errorf("got %v", err)
	}
	if err := tab.Put(t.Context(), item1("a"), table.Absent()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestClosedTable(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *Table) {
		release := lockOut(t, tab.path)
		result := make(chan error, 1)
		go func() { result <- tab.Put(t.Context(), item1("queued"), table.Always()) }()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- tab.Close() }()
		synctest.Wait()
		release()
		if err := errors.Join(<-result, <-closed, tab.Close()); err != nil {
			t.Errorf("a queued write at Close: %v", err)
		}
		_, getErr := tab.Get(t.Context(), item1("a").Key)
		for op, err := range map[string]error{
			"put":    tab.Put(t.Context(), item1("a"), table.Always()),
			"delete": tab.Delete(t.Context(), item1("a").Key, table.Always()),
			"get":    getErr,
		} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", op, err)
			}
		}
		if _, err := openAt(t, tab.path).Get(t.Context(), item1("queued").Key); err != nil {
			t.Errorf("the queued write: %v", err)
		}
	})
}
