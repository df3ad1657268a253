package lockfile_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/internal/lockfile"
)

// childDir makes the test binary a process that holds a lock in that folder until it is killed.
const childDir = "LOCKFILE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		lock, err := lockfile.Acquire(dir, "child")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		_ = lock.Release()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKilledProcessIsDeadAtOnce(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill() // it has ended, or the test has failed
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if !lockfile.Alive(dir, "child") {
		t.Error("a living process was taken for dead")
	}
	if _, err := lockfile.Acquire(dir, "child"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("its id was acquired again: %v", err)
	}
	if err := child.Process.Kill(); err != nil { // SIGKILL: it cannot clean up
		t.Fatal(err)
	}
	_ = child.Wait()
	if _, err := os.Stat(filepath.Join(dir, "child.lock")); err != nil {
		t.Fatalf("the killed process left no file, so this tests nothing: %v", err)
	}
	if lockfile.Alive(dir, "child") {
		t.Error("a killed process was taken for living")
	}
	if files := list(t, dir); len(files) != 0 {
		t.Errorf("stale files are left: %q", files)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestAcquireAliveRelease(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	if lockfile.Alive(dir, "a-1") {
		t.Error("alive before it was acquired")
	}
	lock, err := lockfile.Acquire(dir, "a-1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !lockfile.Alive(dir, "a-1") {
			t.Error("not alive while it is held") // by the same process
		}
	}
	if lockfile.Alive(dir, "a-2") {
		t.Error("another id is alive")
	}
	if _, err := lockfile.Acquire(dir, "a-1"); err == nil {
		t.Error("acquired twice")
	}
	for range 2 {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
	if lockfile.Alive(dir, "a-1") || len(list(t, dir)) != 0 {
		t.Errorf("alive after its release, or files are left: %q", list(t, dir))
	}
}

func TestAcquireRemovesStaleFiles(t *testing.T) {
	dir := t.TempDir()
	held, err := lockfile.Acquire(dir, "held")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release() // the folder is removed anyway
	for _, name := range []string{"stale.lock", "other.txt", "odd name.lock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockfile.Acquire(dir, "new")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if got := strings.Join(list(t, dir), " "); got != "held.lock new.lock odd name.lock other.txt" {
		t.Errorf("files: %s", got)
	}
}

func TestLookersDoNotDisturb(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					lockfile.Alive(dir, "busy")
				}
			}
		})
	}
	for range 200 {
		lock, err := lockfile.Acquire(dir, "busy")
		if err != nil {
			t.Error(err)
			break
		}
		if !lockfile.Alive(dir, "busy") {
			t.Error("a holder was taken for dead")
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestInvalidOwners(t *testing.T) {
	dir := t.TempDir()
	for _, owner := range []string{"", "..", "a/b", "../a", "a b", "a.b", "\u00e4", strings.Repeat("a", 201)} {
		if _, err := lockfile.Acquire(dir, owner); err == nil {
			t.Errorf("%q was acquired", owner)
		}
		if lockfile.Alive(dir, owner) {
			t.Errorf("%q is alive", owner)
		}
	}
}
