//go:build unix

package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

type mode int

const (
	exclusive mode = unix.LOCK_EX
	shared    mode = unix.LOCK_SH
)

// lock takes a lock without waiting and reports whether it got it. Unlike a POSIX record lock it belongs to this open
// file, so it also excludes others in the same process.
func lock(file *os.File, m mode) (bool, error) {
	for {
		err := unix.Flock(int(file.Fd()), int(m)|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, &os.PathError{Op: "flock", Path: file.Name(), Err: err}
		}
	}
}
