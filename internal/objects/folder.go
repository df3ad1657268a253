// Package objects keeps the blob port where objects live: in a folder of a laptop, or in an S3 bucket. It owns durability
// (an object that was put in a folder has been synced, and so has its place) and wholeness (a name never shows a part of an
// object); it refuses names that leave the folder, or the prefix of the bucket.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"sluice/internal/core/blob"
)

// partial is the folder of objects that are being written. No object's name can start with a dot.
const partial = ".partial"

// abandonedAfter is how old a partial object is when its writer must have died.
const abandonedAfter = 24 * time.Hour

// Folder is a blob.Store in a folder. Since names are paths, an object cannot have the name of another one's folder.
type Folder struct {
	dir   string
	setup func() error
}

var _ blob.Store = (*Folder)(nil)

// NewFolder returns a store in dir, which is created with the first object. Several processes may share it.
func NewFolder(dir string) *Folder {
	f := &Folder{dir: dir}
	f.setup = sync.OnceValue(func() error {
		if err := makeDir(filepath.Join(dir, partial)); err != nil {
			return err
		}
		return f.sweep()
	})
	return f
}

// Put implements blob.Store.
func (f *Folder) Put(ctx context.Context, name string, data io.Reader) error {
	path, err := f.path(ctx, name)
	if err != nil {
		return err
	}
	if err := f.put(ctx, path, data); err != nil {
		return fmt.Errorf("blob %s: %w", name, err)
	}
	return nil
}

func (f *Folder) put(ctx context.Context, path string, data io.Reader) error {
	if err := f.setup(); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Join(f.dir, partial), "put-*") // readable by its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // of no effect once it is renamed
	_, err = io.Copy(tmp, blob.Reader(ctx, data))
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(parent)
}

// Get implements blob.Store.
func (f *Folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	path, err := f.path(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := exists(path); err != nil {
		return nil, fmt.Errorf("blob %s: %w", name, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", name, missing(err))
	}
	return file, nil
}

// Delete implements blob.Store.
func (f *Folder) Delete(ctx context.Context, name string) error {
	path, err := f.path(ctx, name)
	if err != nil {
		return err
	}
	err = exists(path)
	if err == nil {
		err = missing(os.Remove(path))
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("blob %s: %w", name, err)
	}
	return nil
}

func (f *Folder) path(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := blob.CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(f.dir, filepath.FromSlash(name)), nil
}

// exists returns blob.ErrNotFound unless there is an object; a folder of objects is none.
func exists(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return blob.ErrNotFound
	}
	return missing(err)
}

// missing turns what a file system says of a path that is not there into blob.ErrNotFound.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return blob.ErrNotFound
	}
	return err
}

// sweep removes what writers left behind when they died.
func (f *Folder) sweep() error {
	dir := filepath.Join(f.dir, partial)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < abandonedAfter {
			continue // gone, or in use
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
