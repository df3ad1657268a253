package sqlite

import (
	"database/sql/driver"
	"time"

	"sluice/internal/core/table"
)

// A page of a query is bounded in items and bytes. The first is small, because many queries want one item.
const (
	firstPage = 8
	pageItems = 256
	pageBytes = 1 << 20
)

// pager reads a query page by page.
type pager struct {
	q     table.Query
	size  int
	items []table.Item // the page read last
	done  bool         // it was the last one
}

func newPager(q table.Query) *pager {
	return &pager{q: q, size: firstPage, done: q.To != "" && q.From >= q.To}
}

// next reads the next page and moves the query behind it. If it fails it may be called again.
func (p *pager) next(c *conn) error {
	size := p.size
	if p.q.Limit > 0 {
		size = min(size, p.q.Limit)
	}
	query := sqlForward
	if p.q.Reverse {
		query = sqlBackward
	}
	var to driver.Value = p.q.To
	if p.q.To == "" {
		to = []byte{} // SQLite orders every blob behind every text
	}
	items, bytes := make([]table.Item, 0, size), 0
	err := c.query(func(row []driver.Value) bool {
		items = append(items, item(p.q.Part, row))
		bytes += items[len(items)-1].Size()
		return bytes < pageBytes
	}, query, p.q.Part, p.q.From, to, time.Now().Unix(), int64(size))
	if err != nil {
		return err
	}
	p.advance(items, len(items) == size || bytes >= pageBytes)
	return nil
}

func (p *pager) advance(items []table.Item, more bool) {
	p.items, p.size = items, min(2*p.size, pageItems)
	if p.q.Limit > 0 {
		p.q.Limit -= len(items)
		more = more && p.q.Limit > 0
	}
	p.done = !more
	if !more {
		return
	}
	if last := items[len(items)-1].Sort; p.q.Reverse {
		p.q.To = last
	} else {
		p.q.From = last + "\x00" // the smallest key that is greater
	}
}
