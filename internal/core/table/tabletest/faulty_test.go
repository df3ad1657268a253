package tabletest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	open := func(*testing.T) table.Table { return tabletest.NewFaulty(memory.New()) }
	tabletest.Run(t, open)
	tabletest.RunInBubble(t, open)
}

func TestMeteredKeepsTheContract(t *testing.T) {
	tabletest.Run(t, func(*testing.T) table.Table { return table.Meter(memory.New()) })
}

func item(sort string) table.Item {
	return table.Item{Key: table.Key{Part: "p", Sort: sort}, Version: 1, Data: []byte(sort)}
}

// stored returns the sort keys that the table under the faults holds, as one word.
func stored(t *testing.T, tab table.Table) string {
	t.Helper()
	var all []string
	for item, err := range tab.Query(t.Context(), table.Query{Part: "p"}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, item.Sort)
	}
	return strings.Join(all, "")
}

func expect(t *testing.T, want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestFaultyWritesByKind(t *testing.T) {
	for name, tt := range map[string]struct {
		kind                 tabletest.Kind
		want                 error
		put, putMany, delete string // what is stored behind each, from "x"
	}{
		"not done":        {tabletest.NotDone, tabletest.ErrInjected, "x", "x", "x"},
		"done but failed": {tabletest.DoneButFailed, tabletest.ErrInjected, "ax", "abx", ""},
		"half done":       {tabletest.HalfDone, tabletest.ErrInjected, "x", "ax", "x"},
		"slow":            {tabletest.Slow, nil, "ax", "abx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i, want := range []string{tt.put, tt.putMany, tt.delete} {
				inner := memory.New()
				f := tabletest.NewFaulty(inner)
				expect(t, nil, f.Put(t.Context(), item("x"), table.Always()))
				f.Inject(tabletest.Fault{Kind: tt.kind})
				switch i {
				case 0:
					expect(t, tt.want, f.Put(t.Context(), item("a"), table.Absent()))
				case 1:
					expect(t, tt.want, f.PutMany(t.Context(), []table.Item{item("a"), item("b")}))
				case 2:
					expect(t, tt.want, f.Delete(t.Context(), item("x").Key, table.VersionIs(1)))
				}
				if got := stored(t, inner); got != want {
					t.Errorf("write %d: stored %q, want %q", i, got, want)
				}
			}
		})
	}
}

func TestFaultyConflictStaysAConflict(t *testing.T) {
	f := tabletest.NewFaulty(memory.New())
	expect(t, nil, f.Put(t.Context(), item("a"), table.Absent()))
	f.Inject(tabletest.Fault{Kind: tabletest.DoneButFailed})
	expect(t, table.ErrConflict, f.Put(t.Context(), item("a"), table.Absent()))
}

func TestFaultyMatchSkipTimes(t *testing.T) {
	f := tabletest.NewFaulty(memory.New())
	own := errors.New("own")
	f.Inject(tabletest.Fault{
		On:   func(op tabletest.Op, key table.Key) bool { return op == tabletest.OpPut && key.Sort != "z" },
		Skip: 1, Times: 2, Err: own,
	})
	var failed []string
	for _, sort := range []string{"a", "z", "b", "z", "c", "d"} {
		if err := f.Put(t.Context(), item(sort), table.Always()); err != nil {
			expect(t, own, err)
			failed = append(failed, sort)
		}
		expect(t, nil, f.PutMany(t.Context(), []table.Item{item(sort)}))
	}
	if !slices.Equal(failed, []string{"b", "c"}) {
		t.Errorf("failed %q, want b and c", failed)
	}
}

func TestFaultyReads(t *testing.T) {
	f := tabletest.NewFaulty(memory.New())
	expect(t, nil, f.PutMany(t.Context(), []table.Item{item("a"), item("b"), item("c")}))
	for kind, want := range map[tabletest.Kind]int{tabletest.NotDone: 0, tabletest.HalfDone: 1, tabletest.DoneButFailed: 3} {
		f.Inject(tabletest.Fault{Kind: kind, On: func(op tabletest.Op, _ table.Key) bool { return !op.IsWrite() }})
		got, err := f.Get(t.Context(), item("a").Key)
		expect(t, tabletest.ErrInjected, err)
		many, err := f.GetMany(t.Context(), []table.Key{item("a").Key})
		expect(t, tabletest.ErrInjected, err)
		if got.Data != nil || many != nil {
			t.Errorf("kind %d: a failed read returned %v, %v", kind, got, many)
		}
		n := 0
		var last error
		for _, err := range f.Query(t.Context(), table.Query{Part: "p"}) {
			if last = err; err == nil {
				n++
			}
		}
		expect(t, tabletest.ErrInjected, last)
		if n != want {
			t.Errorf("kind %d: the query yielded %d items, want %d", kind, n, want)
		}
		f.Heal()
	}
}

func TestFaultyCrash(t *testing.T) {
	for kind, want := range map[tabletest.Kind]string{tabletest.NotDone: "ab", tabletest.DoneButFailed: "abcd", tabletest.HalfDone: "abc"} {
		inner := memory.New()
		f := tabletest.NewFaulty(inner)
		f.CrashAt(3, kind)
		expect(t, nil, f.Put(t.Context(), item("a"), table.Always()))
		expect(t, nil, f.Put(t.Context(), item("b"), table.Always()))
		if f.Crashed() {
			t.Fatal("crashed too early")
		}
		expect(t, tabletest.ErrCrashed, f.PutMany(t.Context(), []table.Item{item("c"), item("d")}))
		expect(t, tabletest.ErrCrashed, f.Put(t.Context(), item("e"), table.Always()))
		_, err := f.Get(t.Context(), item("a").Key)
		expect(t, tabletest.ErrCrashed, err)
		if got := stored(t, inner); got != want || !f.Crashed() {
			t.Errorf("kind %d: stored %q, want %q", kind, got, want)
		}
		f.Heal()
		expect(t, nil, f.Put(t.Context(), item("e"), table.Always()))
	}
}

func TestFaultyDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := tabletest.NewFaulty(memory.New())
		f.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: time.Hour})
		start := time.Now()
		expect(t, nil, f.Put(t.Context(), item("a"), table.Always()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		expect(t, context.DeadlineExceeded, f.Put(ctx, item("b"), table.Always()))
		if took := time.Since(start); took != time.Hour+time.Minute {
			t.Errorf("took %v, want an hour and a minute", took)
		}
		if got := stored(t, f); got != "a" {
			t.Errorf("stored %q, want a", got)
		}
	})
}

func TestFaultyTrace(t *testing.T) {
	f := tabletest.NewFaulty(memory.New())
	var seen []string
	f.OnOp(func(e tabletest.Event) { seen = append(seen, string(e.Op)+e.Keys[0].Sort) })
	_ = f.Put(t.Context(), item("a"), table.Absent())
	_ = f.Put(t.Context(), item("a"), table.Absent())
	_ = f.PutMany(t.Context(), []table.Item{item("b"), item("c")})
	_, _ = f.GetMany(t.Context(), []table.Key{item("c").Key})
	for range f.Query(t.Context(), table.Query{Part: "p", From: "b"}) {
		break
	}
	_ = f.Delete(t.Context(), item("a").Key, table.VersionIs(1))
	want := []string{"Puta", "Puta", "PutManyb", "GetManyc", "Queryb", "Deletea"}
	if !slices.Equal(seen, want) {
		t.Errorf("hook saw %q, want %q", seen, want)
	}
	if f.Writes() != 4 || f.Count() != 6 || f.Count(tabletest.OpQuery, tabletest.OpGet) != 1 {
		t.Errorf("counted %d writes, %d operations", f.Writes(), f.Count())
	}
	trace := f.Trace()
	if len(trace) != 6 || trace[0].Err != nil || !errors.Is(trace[1].Err, table.ErrConflict) || !trace[1].Cond.WantsAbsent() || trace[4].Err != nil {
		t.Errorf("trace %+v", trace)
	}
}
