package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It talks to the driver directly: database/sql would add its own
// pool, locks and conversions to statements that take a few microseconds each. One goroutine at a time uses it.
type conn struct {
	driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue // reused
}

func openConn(path, options string) (*conn, error) {
	uri := url.URL{Scheme: "file", Path: path}
	c, err := new(sqlite.Driver).Open(uri.String() + options)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) close() {
	for _, stmt := range c.stmts {
		_ = stmt.Close() // all effects have been committed or are given up
	}
	_ = c.Close()
}

func (c *conn) prepared(query string) (driver.Stmt, error) {
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = stmt
	return stmt, nil
}

// exec runs a statement and returns how many rows it changed. It passes the driver no context that can end: a statement
// is short, and an interrupted one would take the whole group with it.
func (c *conn) exec(query string, args ...driver.Value) (int64, error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.named(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs a statement and passes each row to f until f returns false.
func (c *conn) query(f func(row []driver.Value) bool, query string, args ...driver.Value) (err error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return err
	}
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), c.named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if !f(row) {
			return nil
		}
	}
}

// number and text run a statement that answers with one value.
func (c *conn) number(query string) (int64, error) { return one[int64](c, query) }
func (c *conn) text(query string) (string, error)  { return one[string](c, query) }

func one[T any](c *conn, query string) (value T, err error) {
	err = c.query(func(row []driver.Value) bool {
		value, _ = row[0].(T)
		return false
	}, query)
	if err != nil {
		return value, fmt.Errorf("%s: %w", query, err)
	}
	return value, nil
}

// transaction runs f between begin and end.
func (c *conn) transaction(begin string, f func() error) error {
	if _, err := c.exec(begin); err != nil {
		return err
	}
	return c.end(f())
}

// end commits the open transaction, or rolls it back if there was an error.
func (c *conn) end(err error) error {
	if err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil {
		_, _ = c.exec("ROLLBACK") // fails if SQLite has rolled back already
	}
	return err
}

func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}
