package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/table"
)

func item1(sort string) table.Item {
	return table.Item{Key: table.Key{Part: "p", Sort: sort}, Version: 1, Data: []byte(sort)}
}

// lockOut opens the file as another process would and takes the lock for writing.
func lockOut(t *testing.T, path string) (release func()) {
	t.Helper()
	c, err := openConn(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(c.close)
}

// inBubble runs a test with a fresh table under a fake clock.
func inBubble(t *testing.T, f func(t *testing.T, tab *Table)) {
	synctest.Test(t, func(t *testing.T) { f(t, openAt(t, filepath.Join(t.TempDir(), "state.db"))) })
}

func TestQueuedWritesFormOneGroupAndConflictsStayApart(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *Table) {
		if err := tab.Put(t.Context(), item1("taken"), table.Absent()); err != nil {
			t.Fatal(err)
		}
		before := tab.queue.groups.Load()
		release := lockOut(t, tab.path)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if err := tab.Put(t.Context(), item1(fmt.Sprint(i)), table.Absent()); err != nil {
					t.Errorf("put %d: %v", i, err)
				}
			})
			wg.Go(func() {
				if err := tab.Put(t.Context(), item1("taken"), table.Absent()); !errors.Is(err, table.ErrConflict) {
					t.Errorf("conflicting put: %v", err)
				}
			})
		}
		time.Sleep(time.Second) // all are queued
		release()
		wg.Wait()
		if groups := tab.queue.groups.Load() - before; groups != 1 {
			t.Errorf("80 queued writes took %d transactions, want 1", groups)
		}
		for i := range 40 {
			if _, err := tab.Get(t.Context(), item1(fmt.Sprint(i)).Key); err != nil {
				t.Errorf("get %d: %v", i, err)
			}
		}
	})
}

func TestQueuedWriteIsWithdrawnWhenItsCallerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *Table) {
		release := lockOut(t, tab.path)
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := tab.Put(ctx, item1("a"), table.Always()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the end of the context", err)
		}
		if waited := time.Since(start); waited != 2*time.Second {
			t.Errorf("waited %v", waited)
		}
		if _, err := tab.Get(t.Context(), item1("a").Key); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("reading while another process writes: %v", err)
		}
		release()
		if err := tab.Put(t.Context(), item1("b"), table.Always()); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Get(t.Context(), item1("a").Key); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("the withdrawn write had an effect: %v", err)
		}
	})
}

func TestCallerLearnsTheTrueOutcomeOfACommitUnderWay(t *testing.T) {
	for _, outcome := range []error{nil, table.ErrConflict} {
		synctest.Test(t, func(t *testing.T) {
			q := queue{wake: make(chan struct{}, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() { got <- q.submit(ctx, 0, nil) }()
			synctest.Wait()
			group := q.take() // from here on the write is in a transaction
			cancel()
			synctest.Wait()
			select {
			case err := <-got:
				t.Fatalf("the caller went on with %v before the outcome was known", err)
			default:
			}
			group[0].done <- outcome
			if err := <-got; !errors.Is(err, outcome) {
				t.Errorf("got %v, want %v", err, outcome)
			}
		})
	}
}

func TestGroupsAreBounded(t *testing.T) {
	q := queue{}
	for range maxGroupWrites + 10 {
		q.writes = append(q.writes, &write{bytes: 1})
	}
	if n := len(q.take()); n != maxGroupWrites {
		t.Errorf("a group of %d writes", n)
	}
	if n := len(q.take()); n != 10 {
		t.Errorf("the rest was a group of %d writes", n)
	}
	for range 30 {
		q.writes = append(q.writes, &write{bytes: 390 << 10})
	}
	if n := len(q.take()); n != 11 { // 10 of them are less than 4 MB
		t.Errorf("a group of %d large writes", n)
	}
	inBubble(t, func(t *testing.T, tab *Table) {
		before := tab.queue.groups.Load()
		var items []table.Item
		for i := range 30 {
			item := item1(fmt.Sprint(i))
			item.Data = make([]byte, 300<<10)
			items = append(items, item)
		}
		if err := tab.PutMany(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		if groups := tab.queue.groups.Load() - before; groups != 3 { // 14 + 14 + 2
			t.Errorf("9 MB took %d transactions, want 3", groups)
		}
	})
}

func TestLockThatIsNeverReleasedIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *Table) {
		release := lockOut(t, tab.path)
		defer release()
		err := tab.Put(t.Context(), item1("a"), table.Always())
		if err == nil || !strings.Contains(err.Error(), "state.db: another process has kept it locked for 1m0s") {
			t.Errorf("got %v", err)
		}
		release()
		if err := tab.Put(t.Context(), item1("a"), table.Absent()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestExpiredItemsAreRemovedInPassing(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *Table) {
		var items []table.Item
		for i := range 50 {
			item := item1(fmt.Sprintf("old%d", i))
			item.Expires = time.Now().Add(time.Minute)
			items = append(items, item)
		}
		if err := tab.PutMany(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		rows := func() (n int64) {
			if err := tab.read(t.Context(), func(c *conn) (err error) {
				n, err = c.number("SELECT count(*) FROM items")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := rows(); n != 50 {
			t.Fatalf("%d rows, want 50", n)
		}
		time.Sleep(2 * time.Minute)
		if err := tab.Put(t.Context(), item1("new"), table.Always()); err != nil {
			t.Fatal(err)
		}
		if n := rows(); n != 1 {
			t.Errorf("%d rows are stored, want the new one alone", n)
		}
	})
}
