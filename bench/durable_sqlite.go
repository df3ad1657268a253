package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver of every contender: all run the same SQLite
)

// dsn names a database in dir with a write-ahead log that is synced at every commit, and with transactions that take the
// write lock at once, so that none fails in its middle.
func dsn(dir string) string {
	return "file:" + filepath.Join(dir, "bench.db") +
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(ON)"
}

// openSQLite opens the database of dir with at most the given number of connections.
func openSQLite(dir string, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(dir))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// mustSyncFully asks every connection of the pool what it does at a commit. It is called with the pool at rest, after the
// run, so that it sees what the contender itself may have set.
func mustSyncFully(ctx context.Context, db *sql.DB) (err error) {
	var held []*sql.Conn
	defer func() {
		for _, conn := range held {
			err = errors.Join(err, conn.Close())
		}
	}()
	for range max(1, db.Stats().OpenConnections) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		held = append(held, conn)
		var synchronous int
		var journal string
		if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
			return err
		}
		if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
			return err
		}
		if synchronous < 2 || journal != "wal" { // 2 is FULL, 1 NORMAL: with a WAL, NORMAL does not sync at a commit
			return fmt.Errorf("a connection has synchronous=%d and journal_mode=%s; full durability needs 2 and wal", synchronous, journal)
		}
	}
	return nil
}

// checkStored reads one result per line of the query and checks that all are there.
func checkStored(ctx context.Context, db *sql.DB, load Load, query string, decode func(string) (string, error)) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	tally := newTally(load)
	for rows.Next() {
		var stored string
		if err := rows.Scan(&stored); err != nil {
			return err
		}
		if decode != nil {
			if stored, err = decode(stored); err != nil {
				return err
			}
		}
		if err := tally.add(stored); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return tally.complete()
}
