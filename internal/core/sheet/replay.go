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
	Stats   Stats // as of the commit, of the whole shard
	Entries []Entry
	Bytes   int
}

type groupForm struct {
	V       int     `json:"v"`
	Stats   Stats   `json:"s"`
	Entries []Entry `json:"r"`
}

// DecodeGroup reads a group's stored form.
func DecodeGroup(framed []byte) (Stats, []Entry, error) {
	b, err := frame.Open(framed)
	if err != nil {
		return Stats{}, nil, err
	}
	var f groupForm
	if err := json.Unmarshal(b, &f); err != nil {
		return Stats{}, nil, fmt.Errorf("journal group: %w", err)
	}
	for i := range f.Entries {
		if f.Entries[i].Kind == Received && f.Entries[i].Value == nil && f.Entries[i].Error == nil && !f.Entries[i].Rejected {
			f.Entries[i].Value = json.RawMessage("null") // absent and null are one in JSON's decoding
		}
	}
	return f.Stats, f.Entries, nil
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
	stats, entries, err := DecodeGroup(b)
	if err != nil {
		return Group{}, fmt.Errorf("journal %s: %w", item.Sort, err)
	}
	return Group{At: at, Stats: stats, Entries: entries, Bytes: len(b)}, nil
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
