package table_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/internal/core/table"
	"sluice/internal/memory"
)

// sized returns an item of this many bytes, keys included.
func sized(sort string, size int) table.Item {
	return table.Item{Key: table.Key{Part: "p", Sort: sort}, Version: 1, Data: make([]byte, size-1-len(sort))}
}

func TestMeterCountsUnitsAsDynamoDBBills(t *testing.T) {
	ctx := t.Context()
	m := table.Meter(memory.New())
	for _, tt := range []struct {
		name string
		do   func() error
		want table.Usage
	}{
		{"put of 1 KB", func() error { return m.Put(ctx, sized("a", 1024), table.Absent()) },
			table.Usage{Operations: 1, ItemsWritten: 1, WriteUnits: 1}},
		{"put of 1 KB and a byte", func() error { return m.Put(ctx, sized("b", 1025), table.Always()) },
			table.Usage{Operations: 1, ItemsWritten: 1, WriteUnits: 2}},
		{"conflict", func() error { return m.Put(ctx, sized("a", 3000), table.Absent()) },
			table.Usage{Operations: 1, WriteUnits: 3}},
		{"refused", func() error { return m.Put(ctx, sized("a", table.MaxItem+1), table.Absent()) }, table.Usage{}},
		{"many", func() error { return m.PutMany(ctx, []table.Item{sized("c", 10), sized("d", 5000), sized("e", 4096)}) },
			table.Usage{Operations: 1, ItemsWritten: 3, WriteUnits: 1 + 5 + 4}},
		{"none", func() error { return m.PutMany(ctx, nil) }, table.Usage{}},
		{"get of 4 KB", func() error { _, err := m.Get(ctx, sized("e", 9).Key); return err },
			table.Usage{Operations: 1, ItemsRead: 1, ReadUnits: 1}},
		{"get of 5000 bytes", func() error { _, err := m.Get(ctx, sized("d", 9).Key); return err },
			table.Usage{Operations: 1, ItemsRead: 1, ReadUnits: 2}},
		{"miss", func() error { _, err := m.Get(ctx, sized("x", 9).Key); return err },
			table.Usage{Operations: 1, ReadUnits: 1}},
		{"get of many, one missing, one twice", func() error {
			_, err := m.GetMany(ctx, []table.Key{{Part: "p", Sort: "d"}, {Part: "p", Sort: "x"}, {Part: "p", Sort: "c"}, {Part: "p", Sort: "d"}})
			return err
		}, table.Usage{Operations: 1, ItemsRead: 2, ReadUnits: 2 + 1 + 1}},
		{"query of 12,155 bytes", func() error { return drain(t, m, 0) },
			table.Usage{Operations: 1, ItemsRead: 5, ReadUnits: 3}},
		{"query broken off after 2,049 bytes", func() error { return drain(t, m, 2) },
			table.Usage{Operations: 1, ItemsRead: 2, ReadUnits: 1}},
		{"delete", func() error { return m.Delete(ctx, sized("c", 9).Key, table.Always()) },
			table.Usage{Operations: 1, ItemsWritten: 1, WriteUnits: 1}},
	} {
		before := m.Usage()
		_ = tt.do() // outcomes are the contract's business
		if got := m.Usage().Sub(before); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestMeterRoundsEveryQueryPage(t *testing.T) {
	m := table.Meter(memory.New())
	for _, sort := range []string{"a", "b", "c", "d", "e"} {
		if err := m.Put(t.Context(), sized(sort, 300_000), table.Always()); err != nil {
			t.Fatal(err)
		}
	}
	before := m.Usage()
	_ = drain(t, m, 0)
	// Three of them fill a page: 900,000 bytes are 220 units of 4 KB, and the other 600,000 are 147.
	if got := m.Usage().Sub(before).ReadUnits; got != 220+147 {
		t.Errorf("got %d read units, want 367", got)
	}
}

func drain(t *testing.T, m *table.Metered, n int) error {
	for _, err := range m.Query(t.Context(), table.Query{Part: "p"}) {
		if n--; err != nil || n == 0 {
			return err
		}
	}
	return nil
}

func TestUsageArithmeticAndJSON(t *testing.T) {
	u := table.Usage{Operations: 1, ItemsWritten: 2, ItemsRead: 3, WriteUnits: 4, ReadUnits: 5}
	if sum := u.Add(u); sum.Sub(u) != u || sum.ReadUnits != 10 || sum.Operations != 2 {
		t.Errorf("got %+v", sum)
	}
	text, err := json.Marshal(u)
	want := `{"operations":1,"itemsWritten":2,"itemsRead":3,"writeUnits":4,"readUnits":5}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestPrefixCoversEveryKeyThatStartsWithIt(t *testing.T) {
	for prefix, to := range map[string]string{
		"":            "",
		"a":           "b",
		"run/":        "run0",
		"\x7f":        "\u0080",
		"\ud7ff":      "\ue000", // steps over what UTF-8 does not have
		"a\U0010ffff": "b",
		"\U0010ffff":  "",
	} {
		q := table.Prefix("p", prefix)
		if q.From != prefix || q.To != to || q.Part != "p" {
			t.Errorf("prefix %q: got %+v, want an end at %q", prefix, q, to)
		}
		if to != "" && (strings.HasPrefix(to, prefix) || prefix+"\U0010ffff\U0010ffff" >= to) {
			t.Errorf("prefix %q: %q is no bound", prefix, to)
		}
	}
}
