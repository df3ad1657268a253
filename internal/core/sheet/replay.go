package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Group is a committed group of journal entries.
type Group struct {
	At      Position
	Counts  Counts // of the whole shard, this group included
	Stats   Stats  // of the whole shard, as of the commit
	Entries []Entry
}

// groupHead says how the whole shard stands after a group, so that the newest group tells it without the others.
type groupHead struct {
	Counts Counts `json:"c"`
	Stats  Stats  `json:"s"`
}

type groupForm struct {
	V       int       `json:"v"`
	Head    groupHead `json:"h"`
	Entries []Entry   `json:"r"`
}

// DecodeGroup reads a group's stored form; At is left to the caller.
func DecodeGroup(framed []byte) (Group, error) {
	b, err := frame.Open(framed)
	if err != nil {
		return Group{}, err
	}
	var f groupForm
	if err := json.Unmarshal(b, &f); err != nil {
		return Group{}, fmt.Errorf("journal group: %w", err)
	}
	for i := range f.Entries {
		if f.Entries[i].Kind == Received && f.Entries[i].Value == nil && f.Entries[i].Error == nil && !f.Entries[i].Rejected {
			f.Entries[i].Value = json.RawMessage("null") // absent and null are one in JSON's decoding
		}
	}
	return Group{Counts: f.Head.Counts, Stats: f.Head.Stats, Entries: f.Entries}, nil
}

// Replay yields the groups of a shard's journal from a position on, in order.
func Replay(ctx context.Context, st *store.Store, run string, shard int, from Position) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		q := table.Prefix(shardPart(run, shard), "j/")
		q.From = journalSort(from)
		for item, err := range st.Table.Query(ctx, q) {
			if err != nil {
				yield(Group{}, err)
				return
			}
			g, err := openGroup(ctx, st, item)
			if !yield(g, err) || err != nil {
				return
			}
		}
	}
}

func openGroup(ctx context.Context, st *store.Store, item table.Item) (Group, error) {
	at, err := parsePosition(item.Sort)
	if err != nil {
		return Group{}, err
	}
	b, err := st.Open(ctx, item)
	if err != nil {
		return Group{}, fmt.Errorf("journal %s: %w", item.Sort, err)
	}
	g, err := DecodeGroup(b)
	if err != nil {
		return Group{}, fmt.Errorf("journal %s: %w", item.Sort, err)
	}
	g.At = at
	return g, nil
}

func parsePosition(sort string) (Position, error) {
	parts := strings.Split(sort, "/")
	if len(parts) != 3 {
		return Position{}, fmt.Errorf("journal key %q: want j/<epoch>/<seq>", sort)
	}
	epoch, err1 := strconv.ParseInt(parts[1], 10, 64)
	seq, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Position{}, fmt.Errorf("journal key %q: %w", sort, err)
	}
	return Position{Epoch: epoch, Seq: seq}, nil
}

// newest is the last group of a shard's journal that the checkpoint's counts do not speak of yet; false if there is none.
// It asks for the last item alone: DynamoDB would read a whole page otherwise, and bill it. More is only there to be gone
// through where a slice has lost the shard and does not know it yet.
func newest(ctx context.Context, st *store.Store, run string, shard int, cp *Checkpoint) (Group, bool, error) {
	q := table.Prefix(shardPart(run, shard), "j/")
	q.From, q.Reverse, q.Limit = journalSort(cp.Counted), true, 1
	g, found, more, err := lastRead(ctx, st, q, cp)
	if err == nil && more {
		q.Limit = 0
		g, found, _, err = lastRead(ctx, st, q, cp)
	}
	return g, found, err
}

// lastRead is the first group that the query yields and the checkpoint reads; more: there were others.
func lastRead(ctx context.Context, st *store.Store, q table.Query, cp *Checkpoint) (g Group, found, more bool, err error) {
	for item, err := range st.Table.Query(ctx, q) {
		if err != nil {
			return Group{}, false, false, err
		}
		if g, err = openGroup(ctx, st, item); err != nil {
			return Group{}, false, false, err
		}
		if cp.Reads(g.At) {
			return g, true, false, nil
		}
		more = true
	}
	return Group{}, false, more, nil
}

// Cut removes the groups before a position, whose content the pages hold.
func Cut(ctx context.Context, st *store.Store, run string, shard int, before Position) error {
	q := table.Query{Part: shardPart(run, shard), From: "j/", To: journalSort(before)}
	for item, err := range st.Table.Query(ctx, q) {
		if err != nil {
			return err
		}
		if err := st.Delete(ctx, item.Key, table.Always()); err != nil {
			return err
		}
	}
	return nil
}

// SavePage makes the encoded state of a page durable.
func SavePage(ctx context.Context, st *store.Store, run string, epoch int64, number int, encoded []byte) error {
	return st.Save(ctx, pageKey(run, number, epoch), 1, encoded, table.Always())
}

// LoadPage reads a page's newest state; table.ErrNotFound if it was never saved.
func LoadPage(ctx context.Context, st *store.Store, run string, number int) (*Page, error) {
	newest := table.Prefix(runPart(run)+"/out", fmt.Sprintf("p/%08d/", number))
	newest.Reverse, newest.Limit = true, 1
	for item, err := range st.Table.Query(ctx, newest) {
		if err != nil {
			return nil, err
		}
		b, err := st.Open(ctx, item)
		if err != nil {
			return nil, fmt.Errorf("result page %d: %w", number, err)
		}
		p, err := DecodePage(b)
		if err != nil {
			return nil, fmt.Errorf("result page %d: %w", number, err)
		}
		if p.Number != number {
			return nil, fmt.Errorf("result page %d: it holds page %d", number, p.Number)
		}
		return p, nil
	}
	return nil, fmt.Errorf("result page %d: %w", number, table.ErrNotFound)
}
