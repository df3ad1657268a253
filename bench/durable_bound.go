package main

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

const (
	createResults = `CREATE TABLE results (id INTEGER PRIMARY KEY, value TEXT NOT NULL)`
	insertResult  = `INSERT INTO results (id, value) VALUES (?, ?)`
	selectResults = `SELECT value FROM results`
)

// commitPerCall is what one writes first: each result is its own transaction. It bounds every design that does so.
func commitPerCall() Contender {
	return Contender{
		Name: "one transaction per call",
		Note: "a bare table; one connection, a prepared insert per result",
		Run: func(ctx context.Context, dir string, load Load) (time.Duration, error) {
			return runBare(ctx, dir, load, func(ctx context.Context, db *sql.DB) (saver, error) {
				insert, err := db.PrepareContext(ctx, insertResult)
				if err != nil {
					return saver{}, err
				}
				return saver{
					save: func(id int, value string) error {
						_, err := insert.ExecContext(ctx, id, value)
						return err
					},
					close: insert.Close,
				}, nil
			})
		},
	}
}

// groupCommit is the bound: no engine, only results that arrive during a commit forming the next one.
func groupCommit() Contender {
	return Contender{
		Name: boundName,
		Note: "a bare table; what was queued during the last commit is the next transaction",
		Run: func(ctx context.Context, dir string, load Load) (time.Duration, error) {
			return runBare(ctx, dir, load, func(ctx context.Context, db *sql.DB) (saver, error) {
				c, err := newCommitter(ctx, db)
				if err != nil {
					return saver{}, err
				}
				return saver{save: c.save, close: c.close}, nil
			})
		},
	}
}

// saver makes one result durable before save returns.
type saver struct {
	save  func(id int, value string) error
	close func() error
}

func runBare(ctx context.Context, dir string, load Load, open func(context.Context, *sql.DB) (saver, error)) (took time.Duration, err error) {
	db, err := openSQLite(dir, 1)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, createResults); err != nil {
		return 0, err
	}
	s, err := open(ctx, db)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = eachRow(ctx, load, func(_ context.Context, row int) error {
		for call := range load.Calls {
			if err := s.save(row*load.Calls+call, callProvider(load, row, call)); err != nil {
				return err
			}
		}
		return nil
	})
	took = time.Since(start)
	if err := errors.Join(err, s.close()); err != nil {
		return 0, err
	}
	if err := mustSyncFully(ctx, db); err != nil {
		return 0, err
	}
	return took, checkStored(ctx, db, load, selectResults, nil)
}

// committer writes results in groups. Its writer owns the connection and works on prepared statements, with as little
// around them as database/sql allows: it is a bound, not a design.
type committer struct {
	conn                  *sql.Conn
	begin, insert, commit *sql.Stmt
	mu                    sync.Mutex
	queue                 []pending
	wake                  chan struct{} // holds one token while the queue may hold something
	stopped               chan struct{}
}

type pending struct {
	id    int
	value string
	done  chan error
}

func newCommitter(ctx context.Context, db *sql.DB) (*committer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &committer{conn: conn, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	for query, into := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &c.begin, insertResult: &c.insert, "COMMIT": &c.commit} {
		if *into, err = conn.PrepareContext(ctx, query); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	go c.write()
	return c, nil
}

func (c *committer) save(id int, value string) error {
	p := pending{id: id, value: value, done: make(chan error, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return <-p.done
}

func (c *committer) write() {
	defer close(c.stopped)
	var group []pending
	for range c.wake {
		c.mu.Lock()
		group, c.queue = c.queue, group[:0]
		c.mu.Unlock()
		if len(group) == 0 {
			continue
		}
		err := c.commitGroup(group)
		for _, p := range group {
			p.done <- err
		}
	}
}

func (c *committer) commitGroup(group []pending) error {
	if _, err := c.begin.Exec(); err != nil {
		return err
	}
	for _, p := range group {
		if _, err := c.insert.Exec(p.id, p.value); err != nil {
			return err // the run fails with it: no need to roll back
		}
	}
	_, err := c.commit.Exec()
	return err
}

func (c *committer) close() error {
	close(c.wake)
	<-c.stopped
	return errors.Join(c.begin.Close(), c.insert.Close(), c.commit.Close(), c.conn.Close())
}
