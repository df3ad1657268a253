// Package lockfile tells whether another process of this machine still lives. It owns one lock file per process
// incarnation; the operating system releases the lock when the process ends, however it ends. It refuses to say anything
// about processes of other machines, and an id must not be used twice.
package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const suffix = ".lock"

// attempts bounds how often Acquire starts again because somebody looked at its file in the same moment. A look takes
// microseconds.
const attempts = 1000

// Lock is held until Release, or until the process ends. It must be kept: an unreachable one may be released by the
// garbage collector.
type Lock struct {
	file    *os.File
	release func() error
}

// Acquire marks owner, an id of [A-Za-z0-9-]+, as living: it locks dir/owner.lock. It removes the files of owners that
// have died. The error says if the id is in use.
func Acquire(dir, owner string) (*Lock, error) {
	if !valid(owner) {
		return nil, fmt.Errorf("lockfile: invalid owner %q (want letters, digits and dashes)", owner)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lockfile: %w", err)
	}
	sweep(dir)
	path := filepath.Join(dir, owner+suffix)
	for range attempts {
		file, err := tryAcquire(path)
		if err != nil {
			return nil, fmt.Errorf("lockfile: %w", err)
		}
		if file != nil {
			return &Lock{file, sync.OnceValue(func() error { return errors.Join(remove(path), file.Close()) })}, nil
		}
	}
	return nil, fmt.Errorf("lockfile: owner %s is in use by another process", owner)
}

// tryAcquire returns nil without an error if the file is locked or has been removed meanwhile.
func tryAcquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := lock(file, exclusive)
	if err == nil && locked && isAt(file, path) {
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// Release ends the lock and removes its file. It may be called more than once.
func (l *Lock) Release() error { return l.release() }

// Alive reports whether the process that acquired owner still lives. In doubt (the file cannot be looked at) it says
// yes, because taking a living owner for dead is worse than waiting. It removes the file of a dead one.
func Alive(dir, owner string) bool {
	if !valid(owner) {
		return false
	}
	path := filepath.Join(dir, owner+suffix)
	file, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	// A shared lock: those who look at the same time must not take each other for the owner.
	locked, err := lock(file, shared)
	if err != nil || !locked {
		return true
	}
	if isAt(file, path) {
		_ = remove(path) // the next one to look may have better luck
	}
	return false
}

// sweep removes the files of dead owners. What cannot be removed harms nobody.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if owner, ok := strings.CutSuffix(entry.Name(), suffix); ok {
			Alive(dir, owner)
		}
	}
}

// isAt reports whether path still names this file.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func valid(owner string) bool {
	return owner != "" && len(owner) <= 200 && strings.Trim(owner, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
