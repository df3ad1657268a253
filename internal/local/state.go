package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	driver "modernc.org/sqlite"

	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/core/resolver"
	"sluice/internal/core/run"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/lockfile"
	"sluice/internal/objects"
	"sluice/internal/provider"
	"sluice/internal/sqlite"
)

// DefaultDir is the state folder, in the working directory.
const DefaultDir = ".sluice"

// What is in a state folder.
const (
	stateFile = "state.db"
	blobsDir  = "blobs"
	locksDir  = "locks"
)

// releaseWait bounds what Close waits for while it gives back leases.
const releaseWait = 5 * time.Second

var (
	// ErrNoState: the folder holds no state.
	ErrNoState = errors.New("there is no state")
	// ErrNotFolder: what should be the state folder is something else.
	ErrNotFolder = errors.New("not a folder")
	// ErrAtWork: another living process is working on the run.
	ErrAtWork = errors.New("another process is working on it")
)

// State is an open state folder: the table, the objects and the locks that every process on this machine shares.
type State struct {
	Dir   string
	Owner string // names this process, and no other ever
	Store *store.Store
	// BodyMemory is how many bytes of answers this process holds at once; 0: gateway.DefaultBodyMemory. Set it before the
	// first Gateway.
	BodyMemory int64
	// Trace is told of retries (gateway.Config); nil: nobody is.
	Trace func(gateway.Trace)
	// Resolvers are those that this program has.
	Resolvers resolver.Set

	session  int    // of a Session, its number
	whole    *State // of a Session, what it is a part of
	table    *sqlite.Table
	meter    *table.Metered
	locks    string
	lock     *lockfile.Lock
	gateways []*gateway.Executor
	bodies   func() *gateway.Bodies // of the process
}

// Open opens the state folder, which is created, for its owner alone, if need be.
func Open(ctx context.Context, dir string) (*State, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	owner := strings.ToLower(ulid.Make().String())
	locks := filepath.Join(dir, locksDir)
	lock, err := lockfile.Acquire(locks, owner)
	if err != nil {
		return nil, fmt.Errorf("state folder %s: %w", dir, err)
	}
	tbl, err := sqlite.Open(ctx, filepath.Join(dir, stateFile))
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	meter := table.Meter(tbl)
	s := &State{
		Dir: dir, Owner: owner, table: tbl, meter: meter, locks: locks, lock: lock,
		Store: &store.Store{Table: meter, Blobs: places{
			own: objects.NewFolder(filepath.Join(dir, blobsDir)), published: objects.NewFolder(filepath.Join(dir, publishedDir))}},
	}
	s.bodies = sync.OnceValue(func() *gateway.Bodies { return gateway.NewBodies(s.BodyMemory) })
	return s, nil
}

// OpenExisting is Open for who only looks: ErrNoState where nothing was ever started.
func OpenExisting(ctx context.Context, dir string) (*State, error) {
	if _, err := os.Stat(filepath.Join(dir, stateFile)); err != nil {
		return nil, fmt.Errorf("%w in %s: nothing was started from this folder yet; --state names another one", ErrNoState, dir)
	}
	return Open(ctx, dir)
}

// makeFolder makes the folder, and keeps the customers' data in it out of version control.
func makeFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is %w; name another one with --state", dir, ErrNotFolder)
	case err == nil:
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

// Usage is what the table was asked to do by this process.
func (s *State) Usage() table.Usage { return s.meter.Usage() }

// Close gives back what this process holds of providers' concurrency, and closes the state.
func (s *State) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	var errs []error
	for _, g := range s.gateways {
		errs = append(errs, g.Close(ctx))
	}
	if s.whole != nil {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, s.table.Close(), s.lock.Release())...)
}

// Gateway executes the calls of a catalogue in this process, within limits that all processes of the state folder
// share. Without a catalogue it knows no tool.
func (s *State) Gateway(tools *mapspec.Catalogue, secrets gateway.Secrets, userAgent string) *gateway.Executor {
	if tools == nil {
		tools = &mapspec.Catalogue{}
	}
	paced := pacer.New(s.meter, s.pacing())
	paced.Alive = s.alive
	g := gateway.New(gateway.Config{
		Catalogue: tools, Pacer: paced, Secrets: secrets, Bodies: s.bodies(), Trace: s.Trace,
		Sender: provider.New(provider.Options{UserAgent: userAgent}),
	})
	s.gateways = append(s.gateways, g)
	return g
}

// Driver returns a driver for runs whose calls go through the gateway.
func (s *State) Driver(g *gateway.Executor, set run.Settings) *Driver {
	return &Driver{
		Ports: run.Ports{
			Store: s.Store, Gateway: g, Owner: s.Owner,
			Alive: s.alive, Resolvers: s.Resolvers,
		},
		Settings: set,
		Usage:    s.meter.Usage,
	}
}

// alive reports whether the process of that name, or of that session, may still be at work.
func (s *State) alive(owner string) bool {
	process, _, _ := strings.Cut(owner, "/")
	return lockfile.Alive(s.locks, process)
}

// Claim makes this process the one that works on the run until the lock is released, or the process ends however it
// ends: also while the run waits, when no slice owns its shards. It returns ErrAtWork if another process has it.
func (s *State) Claim(id string) (*lockfile.Lock, error) {
	if s.AtWork(id) {
		return nil, fmt.Errorf("run %s: %w", id, ErrAtWork)
	}
	lock, err := lockfile.Acquire(s.locks, claimName(id))
	if err != nil && s.AtWork(id) { // it was faster
		return nil, fmt.Errorf("run %s: %w", id, ErrAtWork)
	}
	return lock, err
}

// AtWork reports whether a living process has claimed the run.
func (s *State) AtWork(id string) bool { return lockfile.Alive(s.locks, claimName(id)) }

// claimName is short and safe whatever the run's id.
func claimName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "run-" + hex.EncodeToString(sum[:10])
}

// StoreFailed reports whether the error is one of the state folder, and not of what was asked.
func StoreFailed(err error) bool {
	var failed *driver.Error
	for _, of := range []error{table.ErrConflict, table.ErrNotFound, store.ErrDamaged} {
		if errors.Is(err, of) {
			return true
		}
	}
	return errors.As(err, &failed)
}
