package export

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Output is a file that is being written under a temporary name beside its own. It appears under its own name,
// whole and durable, at Commit, or never.
type Output struct {
	f    *os.File
	path string
	mode fs.FileMode // of the file that is replaced; 0: there is none
	std  bool
	done bool
	err  error // the first failed write
}

// File begins the file at path; "-" is standard output, which cannot be taken back: what is written to it is
// out. A symbolic link is followed, so that the file it points to is replaced, and an existing file's
// permissions are kept.
func File(path string) (*Output, error) {
	if path == "-" {
		return &Output{f: os.Stdout, path: path, std: true}, nil
	}
	mode := fs.FileMode(0)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file that can be replaced", path)
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// Not os.CreateTemp, which makes the file private: a new file gets what the user's umask says.
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()+".tmp")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &Output{f: f, path: path, mode: mode}, nil
}

var _ io.Writer = (*Output)(nil)

// Write implements io.Writer. After a failed write, Commit fails.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// Commit makes the file durable and gives it its name. If it fails, the temporary file is gone and what had the name
// before still has it.
func (o *Output) Commit() error {
	if o.done {
		return errors.New("export: the file is finished already")
	}
	if o.std {
		o.done = true
		return o.err
	}
	err := o.err
	if err == nil && o.mode != 0 {
		err = o.f.Chmod(o.mode)
	}
	if err == nil {
		err = o.f.Sync()
	}
	if err != nil {
		o.Abort()
		return err
	}
	o.done = true
	err = o.f.Close()
	if err == nil {
		err = os.Rename(o.f.Name(), o.path)
	}
	if err != nil {
		_ = os.Remove(o.f.Name())
		return err
	}
	syncDir(filepath.Dir(o.path))
	return nil
}

// Abort removes the temporary file; after Commit it does nothing, so it can be deferred.
func (o *Output) Abort() {
	if o.done || o.std {
		return
	}
	o.done = true
	_ = o.f.Close()
	_ = os.Remove(o.f.Name())
}

// syncDir makes a rename durable. A system on which folders cannot be opened or synced orders renames by itself, so
// a failure is no reason to report that a file is not there which is.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
