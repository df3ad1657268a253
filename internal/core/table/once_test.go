package table_test

import (
	"errors"
	"testing"

	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

func TestOnceKeepsTheContract(t *testing.T) {
	tabletest.Run(t, func(*testing.T) table.Table { return table.NewOnce(memory.New()) })
}

func TestOnceReadsEachItemOnce(t *testing.T) {
	ctx := t.Context()
	inner := memory.New()
	meter := table.Meter(inner)
	once := table.NewOnce(meter)
	key := table.Key{Part: "p", Sort: "s"}
	if _, err := once.Get(ctx, key); !errors.Is(err, table.ErrNotFound) {
		t.Fatal(err)
	}
	if err := inner.Put(ctx, table.Item{Key: key, Version: 1, Data: []byte("one")}, table.Always()); err != nil {
		t.Fatal(err)
	}
	if _, err := once.Get(ctx, key); !errors.Is(err, table.ErrNotFound) {
		t.Error("what was not there has appeared within one look")
	}
	if err := once.Put(ctx, table.Item{Key: key, Version: 2, Data: []byte("two")}, table.Always()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		item, err := once.Get(ctx, key)
		if err != nil || string(item.Data) != "two" {
			t.Fatalf("%q, %v", item.Data, err)
		}
		item.Data[0] = 'x' // what a caller does with its own
	}
	if got := meter.Usage(); got.ReadUnits != 2 {
		t.Errorf("%+v; want one read before the write and one after", got)
	}
}
