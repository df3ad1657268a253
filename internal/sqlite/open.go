package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Marks in SQLite's header.
const (
	// applicationID marks the files of this program in SQLite's header ("Slce").
	applicationID = 0x536c6365
	// schemaVersion is counted up with every change of the schema.
	schemaVersion = 1
)

const schema = `CREATE TABLE items (
	part    TEXT NOT NULL,
	sort    TEXT NOT NULL,
	version INTEGER NOT NULL,
	expires INTEGER NOT NULL, -- Unix seconds, 0 is never
	data    BLOB NOT NULL,
	PRIMARY KEY (part, sort)
) WITHOUT ROWID`

const schemaIndex = `CREATE INDEX expiring ON items (expires) WHERE expires <> 0`

// openWriter opens the connection that writes, and makes the schema in a new file.
func openWriter(ctx context.Context, path string) (*conn, error) {
	var c *conn
	err := patiently(ctx, func() (err error) {
		if c, err = openConn(path, ""); err != nil {
			return err
		}
		if err = prepareFile(c, path); err != nil {
			c.close()
		}
		return err
	})
	return c, explain(path, err)
}

func prepareFile(c *conn, path string) error {
	// Before anything in a foreign file is changed, and in one view of it, as another process may be making the schema.
	if err := c.transaction("BEGIN", func() error { return checkOwner(c, path) }); err != nil {
		return err
	}
	if mode, err := c.text("PRAGMA journal_mode = WAL"); err != nil {
		return err
	} else if mode != "wal" {
		return fmt.Errorf("sqlite: the file system of %s cannot share memory between processes; choose a local disk", path)
	}
	for _, pragma := range []string{
		"PRAGMA synchronous = FULL", // every commit is synced; the default in WAL mode would lose the last ones
		"PRAGMA wal_autocheckpoint = 4000",
		"PRAGMA journal_size_limit = 67108864",
		"PRAGMA cache_size = -1024", // KiB; what is read was written long ago, what is written is rarely read soon
	} {
		if _, err := c.exec(pragma); err != nil {
			return err
		}
	}
	return c.transaction("BEGIN IMMEDIATE", func() error { return createSchema(c, path) })
}

// createSchema looks again, as another process may have made the schema meanwhile.
func createSchema(c *conn, path string) error {
	if err := checkOwner(c, path); err != nil {
		return err
	}
	if version, err := c.number("PRAGMA user_version"); err != nil || version == schemaVersion {
		return err
	}
	for _, statement := range []string{
		schema,
		schemaIndex,
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
	} {
		if _, err := c.exec(statement); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner refuses what is neither an empty file nor one of ours.
func checkOwner(c *conn, path string) error {
	var facts [3]int64
	for i, query := range []string{
		"PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema",
	} {
		var err error
		if facts[i], err = c.number(query); err != nil {
			return err
		}
	}
	switch id, version, objects := facts[0], facts[1], facts[2]; {
	case id == 0 && version == 0 && objects == 0:
		return nil
	case id != applicationID:
		return fmt.Errorf("sqlite: %s is a database of another program; choose another path", path)
	case version > schemaVersion:
		return fmt.Errorf("sqlite: %s was written by a newer version of this program (format %d, this one knows up to %d); update the program",
			path, version, schemaVersion)
	}
	return nil
}

// Waiting for another process's lock starts fast, because a commit takes about a millisecond, and a process that commits
// without a pause leaves gaps of microseconds: SQLite's own busy timeout, which steps up to 100 ms, would hardly ever hit
// one. A lock held for seconds is no commit; it is waited for calmly, up to a time in which something must be wrong.
const (
	firstPause = 100 * time.Microsecond
	eagerPause = time.Millisecond
	eagerFor   = 5 * time.Second
	calmPause  = 50 * time.Millisecond
	maxBusy    = time.Minute
)

// patiently runs f again and again while another process holds a lock that it needs.
func patiently(ctx context.Context, f func() error) error {
	pause, start := firstPause, time.Now()
	for {
		err := f()
		if !busy(err) {
			return err
		}
		waited := time.Since(start)
		if waited > maxBusy {
			return fmt.Errorf("another process has kept it locked for %s: %w", maxBusy, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, eagerPause)
		if waited > eagerFor {
			pause = calmPause
		}
	}
}

func busy(err error) bool {
	code := resultCode(err)
	return code == lib.SQLITE_BUSY || code == lib.SQLITE_PROTOCOL // the latter: a race of two processes opening the log
}

// resultCode returns SQLite's primary result code, or 0.
func resultCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// explain says in a user's terms what SQLite found.
func explain(path string, err error) error {
	switch code := resultCode(err); code {
	case 0:
		return err
	case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
		return fmt.Errorf("sqlite: %s is damaged or not a SQLite database; restore a copy or choose another path: %w", path, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("sqlite: no space is left for %s: %w", path, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return fmt.Errorf("sqlite: %s cannot be opened for writing; check its permissions and those of its folder: %w", path, err)
	}
	return fmt.Errorf("sqlite: %s: %w", path, err)
}
