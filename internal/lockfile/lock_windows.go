package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

type mode uint32

const (
	exclusive mode = windows.LOCKFILE_EXCLUSIVE_LOCK
	shared    mode = 0
)

// lock takes a lock without waiting and reports whether it got it.
func lock(file *os.File, m mode) (bool, error) {
	flags := uint32(m) | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	}
	return false, &os.PathError{Op: "LockFileEx", Path: file.Name(), Err: err}
}
