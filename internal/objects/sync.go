package objects

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// makeDir creates a folder and those above it, each for its owner alone, and syncs their places.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return syncDir(filepath.Dir(dir))
	case errors.Is(err, fs.ErrExist):
		return nil // a file in the way shows with the next step
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return makeDir(dir)
}

// syncDir makes durable which names a folder has.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // has no such call; its file systems log names themselves
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
