package awstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sluice/internal/lockfile"
)

const (
	installTimeout = 10 * time.Minute // cold, on a slow line
	lockPoll       = 100 * time.Millisecond
)

// firstMissing returns the first program that cannot be found.
func firstMissing(programs []string) string {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// install makes sure that a part is there and returns the root of the repository. The packages of a test run do this at
// the same time, so they take turns.
func install(part string) (root string, err error) {
	if root, err = findRoot(); err != nil {
		return "", err
	}
	lock, err := takeTurn(filepath.Join(root, "build", "locks"), "setup-"+part)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if out, err := exec.Command("sh", filepath.Join(root, "e2e", "setup.sh"), part).CombinedOutput(); err != nil {
		return "", fmt.Errorf("awstest: e2e/setup.sh %s: %w\n%s", part, err, out)
	}
	return root, nil
}

// findRoot walks up to the folder that has the set-up script: a test runs in the folder of its package.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "e2e", "setup.sh")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("awstest: no e2e/setup.sh above the working directory: the tests need a whole checkout")
		}
		dir = parent
	}
}

func takeTurn(dir, name string) (*lockfile.Lock, error) {
	for start := time.Now(); ; time.Sleep(lockPoll) {
		lock, err := lockfile.Acquire(dir, name)
		if err == nil || time.Since(start) > installTimeout {
			return lock, err
		}
	}
}
