package objects_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/blob"
	"sluice/internal/core/blob/blobtest"
	"sluice/internal/objects"
)

func TestFolderContract(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		return objects.NewFolder(filepath.Join(t.TempDir(), "not", "there", "yet"))
	})
}

func TestFolderLeavesNoPartialFiles(t *testing.T) {
	dir := t.TempDir()
	partial := filepath.Join(dir, ".partial")
	if err := os.Mkdir(partial, 0o700); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(partial, "put-old"), filepath.Join(partial, "put-young")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	longAgo := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	folder := objects.NewFolder(dir)
	if err := folder.Put(t.Context(), "a", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an abandoned file is still there: %v", err)
	}
	if entries, _ := os.ReadDir(partial); len(entries) != 1 || entries[0].Name() != "put-young" {
		t.Errorf("partial files: %v, want the one that may be in use", entries)
	}
}

func TestFolderIsForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	if err := objects.NewFolder(dir).Put(t.Context(), "a/b", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "a"): 0o700, filepath.Join(dir, "a", "b"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

func TestFolderInTheWayOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := objects.NewFolder(file).Put(t.Context(), "a", strings.NewReader("x")); err == nil {
		t.Error("put into a folder that is a file succeeded")
	}
}
