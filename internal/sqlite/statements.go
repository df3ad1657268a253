package sqlite

import (
	"database/sql/driver"
	"fmt"

	"sluice/internal/core/table"
)

// Statements compare text bytewise, SQLite's default. A row is live while expires is 0 or in the future.
const (
	sqlGet = `SELECT sort, version, expires, data FROM items WHERE part = ? AND sort = ? AND (expires = 0 OR expires > ?)`

	sqlPut = `INSERT INTO items (part, sort, version, expires, data) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT DO UPDATE SET version = ?3, expires = ?4, data = ?5`
	sqlPutAbsent  = sqlPut + ` WHERE items.expires <> 0 AND items.expires <= ?6`
	sqlPutVersion = `UPDATE items SET version = ?3, expires = ?4, data = ?5
		WHERE part = ?1 AND sort = ?2 AND version = ?7 AND (expires = 0 OR expires > ?6)`

	sqlDelete        = `DELETE FROM items WHERE part = ?1 AND sort = ?2`
	sqlDeleteVersion = sqlDelete + ` AND version = ?4 AND (expires = 0 OR expires > ?3)`

	sqlForward = `SELECT sort, version, expires, data FROM items
		WHERE part = ? AND sort >= ? AND sort < ? AND (expires = 0 OR expires > ?) ORDER BY sort LIMIT ?`
	sqlBackward = `SELECT sort, version, expires, data FROM items
		WHERE part = ? AND sort >= ? AND sort < ? AND (expires = 0 OR expires > ?) ORDER BY sort DESC LIMIT ?`
)

func (c *conn) getMany(keys []table.Key, now int64) ([]table.Item, error) {
	var items []table.Item
	var seen map[table.Key]bool
	if len(keys) > 1 {
		seen = make(map[table.Key]bool, len(keys))
	}
	for _, key := range keys {
		if seen[key] {
			continue
		}
		if seen != nil {
			seen[key] = true
		}
		err := c.query(func(row []driver.Value) bool {
			items = append(items, item(key.Part, row))
			return false
		}, sqlGet, key.Part, key.Sort, now)
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (c *conn) put(item table.Item, cond table.If, now int64) error {
	data := item.Data
	if data == nil {
		data = []byte{} // the driver would store NULL
	}
	expires := table.ExpirySeconds(item.Expires)
	query, args := sqlPut, []driver.Value{item.Part, item.Sort, item.Version, expires, data}
	if want, ok := cond.WantsVersion(); ok {
		query, args = sqlPutVersion, append(args, now, want)
	} else if cond.WantsAbsent() {
		query, args = sqlPutAbsent, append(args, now)
	}
	return conflictIfNone(item.Key)(c.exec(query, args...))
}

func (c *conn) delete(key table.Key, cond table.If, now int64) error {
	if want, ok := cond.WantsVersion(); ok {
		return conflictIfNone(key)(c.exec(sqlDeleteVersion, key.Part, key.Sort, now, want))
	}
	if cond.WantsAbsent() {
		items, err := c.getMany([]table.Key{key}, now)
		if err == nil && len(items) > 0 {
			err = conflict(key)
		}
		return err
	}
	_, err := c.exec(sqlDelete, key.Part, key.Sort)
	return err
}

func conflictIfNone(key table.Key) func(int64, error) error {
	return func(changed int64, err error) error {
		if err == nil && changed == 0 {
			err = conflict(key)
		}
		return err
	}
}

func conflict(key table.Key) error { return fmt.Errorf("%w: %s", table.ErrConflict, key) }

func item(part string, row []driver.Value) table.Item {
	sort, _ := row[0].(string)
	version, _ := row[1].(int64)
	expires, _ := row[2].(int64)
	data, _ := row[3].([]byte)
	return table.Item{
		Key:     table.Key{Part: part, Sort: sort},
		Version: version,
		Data:    data,
		Expires: table.ExpiryTime(expires),
	}
}
