package export_test

import (
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/core/export"
)

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func begin(t *testing.T, path, text string) *export.Output {
	t.Helper()
	f, err := export.File(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.csv")
	f := begin(t, path, "half")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("the file is there before Commit")
	}
	f.Abort()
	if names := filesIn(t, dir); len(names) != 0 {
		t.Fatalf("Abort left %v", names)
	}
	f = begin(t, path, "whole")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort() // deferred by habit
	if got, err := os.ReadFile(path); string(got) != "whole" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	if names := filesIn(t, dir); len(names) != 1 {
		t.Fatalf("Commit left %v", names)
	}
	if err := f.Commit(); err == nil {
		t.Error("a second Commit succeeded")
	}
}

func TestAbortKeepsTheFileThatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	begin(t, path, "new").Abort()
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("%q", got)
	}
	if err := begin(t, path, "new").Commit(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if got, _ := os.ReadFile(path); string(got) != "new" || err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%q %v %v", got, info.Mode(), err)
	}
}

func TestSymbolicLinkIsFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target, link := filepath.Join(elsewhere, "real.csv"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := begin(t, link, "new").Commit(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(target); string(got) != "new" {
		t.Errorf("%q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	if _, err := export.File(dir); err == nil {
		t.Error("a folder was opened")
	}
	if _, err := export.File(filepath.Join(dir, "no", "out.csv")); err == nil {
		t.Error("a file in no folder was opened")
	}
}

// A Commit that fails leaves what was there, and no temporary file.
func TestFailedCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.csv")
	f := begin(t, path, "new")
	if err := os.Mkdir(path, 0o755); err != nil { // meanwhile a folder has the name
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil {
		t.Error("Commit succeeded")
	}
	if names := filesIn(t, dir); len(names) != 1 || names[0] != "out.csv" {
		t.Errorf("left %v", names)
	}
}

func TestStandardOutput(t *testing.T) {
	f, err := export.File("-")
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stdout.Stat(); err != nil {
		t.Error("standard output was closed")
	}
}
