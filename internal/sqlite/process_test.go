package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/internal/core/table"
)

// childRole makes the test binary a process of its own that works on the file childPath.
const (
	childRole = "SQLITE_TEST_ROLE"
	childPath = "SQLITE_TEST_PATH"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(childRole); role {
	case "":
		os.Exit(m.Run())
	case "count":
		err = count(os.Getenv(childPath))
	case "append":
		err = appendForever(os.Getenv(childPath))
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	counters   = 4  // writers in each process
	increments = 40 // of each writer
)

// count increments a shared item by compare-and-swap, with as many own writes between.
func count(path string) error {
	ctx := context.Background()
	tab, err := Open(ctx, path)
	if err != nil {
		return err
	}
	errs := make([]error, counters)
	var wg sync.WaitGroup
	for w := range counters {
		wg.Go(func() {
			for i := 0; i < increments && errs[w] == nil; i++ {
				own := item1(fmt.Sprintf("own/%d/%d/%d", os.Getpid(), w, i))
				errs[w] = errors.Join(tab.Put(ctx, own, table.Absent()), increment(ctx, tab))
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, tab.Close())...)
}

func increment(ctx context.Context, tab *Table) error {
	for {
		item, err := tab.Get(ctx, item1("shared").Key)
		next, cond := item1("shared"), table.Absent()
		switch {
		case err == nil:
			next.Version, cond = item.Version+1, table.VersionIs(item.Version)
		case !errors.Is(err, table.ErrNotFound):
			return err
		}
		if err := tab.Put(ctx, next, cond); !errors.Is(err, table.ErrConflict) {
			return err
		}
	}
}

// appendForever writes numbered items and prints each number once its write is durable.
func appendForever(path string) error {
	tab, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := tab.Put(context.Background(), item1(fmt.Sprintf("log/%08d", i)), table.Absent()); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func child(role, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path)
	return cmd
}

// TestProcessesShareAFile starts three processes at once on a file that does not exist yet. None may see a lock, none may
// lose an update.
func TestProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if out, err := child("count", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	const all = 3 * counters * increments
	tab := openAt(t, path)
	item, err := tab.Get(t.Context(), item1("shared").Key)
	if err != nil || item.Version != all {
		t.Errorf("counted to %d, %v; want %d", item.Version, err, all)
	}
	own := 0
	for _, err := range tab.Query(t.Context(), table.Prefix("p", "own/")) {
		if err != nil {
			t.Fatal(err)
		}
		own++
	}
	if own != all {
		t.Errorf("%d own writes are stored, want %d", own, all)
	}
}

// TestKilledProcessLosesNothingItWasTold kills a writer in the middle, while this process reads and writes the same file.
func TestKilledProcessLosesNothingItWasTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	tab := openAt(t, path)
	for round := range 3 {
		writer := child("append", path)
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Delete(t.Context(), item1("none").Key, table.Always()); err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "failed") {
				t.Fatalf("round %d: %s", round, lines.Text())
			}
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				break // cut off by the kill
			}
			acknowledged = n
			if n%10 == 0 {
				if err := increment(t.Context(), tab); err != nil {
					t.Fatal(err)
				}
			}
			if n == 100+37*round {
				_ = writer.Process.Kill()
			}
		}
		_ = writer.Wait() // killed
		stored := 0
		var keys []table.Key
		for item, err := range tab.Query(t.Context(), table.Prefix("p", "log/")) {
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("log/%08d", stored); item.Sort != want {
				t.Fatalf("round %d: item %d is %s", round, stored, item.Sort)
			}
			stored++
			keys = append(keys, item.Key)
		}
		if stored <= acknowledged {
			t.Fatalf("round %d: %d writes were acknowledged, %d are stored", round, acknowledged+1, stored)
		}
		for _, key := range keys {
			if err := tab.Delete(t.Context(), key, table.VersionIs(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
