package sheet_test

import (
	"context"
	"iter"
	"testing"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// limits notes how many items each query asks for.
type limits struct {
	table.Table
	asked []int
}

func (l *limits) Query(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	l.asked = append(l.asked, q.Limit)
	return l.Table.Query(ctx, q)
}

// How a run stands is told by the last group of the journal alone, however much the journal holds: what looks at it does
// so again and again. Only behind a slice that has lost the shard, and still writes, more is read.
func TestHowARunStandsIsReadFromTheLastGroup(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, _ *tabletest.Faulty) {
		ctx := t.Context()
		if err := sheet.Create(ctx, st, &sheet.Run{ID: "r", Status: sheet.Running, Shards: 1}); err != nil {
			t.Fatal(err)
		}
		end := func(j *sheet.Journal, rows int) {
			t.Helper()
			for i := range rows {
				ticket, err := j.Append(&sheet.Entry{Kind: sheet.RowEnded, Row: int64(i)})
				if err == nil {
					err = ticket.Wait(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		look := func(completed int64, queries ...int) {
			t.Helper()
			l := &limits{Table: st.Table}
			r, err := sheet.Load(ctx, &store.Store{Table: l, Blobs: st.Blobs}, "r")
			if err != nil || r.Counts.Completed != completed {
				t.Fatalf("%+v, %v; want %d completed", r, err, completed)
			}
			if len(l.asked) != len(queries) {
				t.Fatalf("queries for %v items, want %v", l.asked, queries)
			}
			for i, n := range queries {
				if l.asked[i] != n {
					t.Errorf("queries for %v items, want %v", l.asked, queries)
				}
			}
		}
		cp := &sheet.Checkpoint{Status: sheet.ShardRunning, Epoch: 1, Counted: sheet.Position{Epoch: 1}}
		if err := cp.Save(ctx, st, "r", 0); err != nil {
			t.Fatal(err)
		}
		look(0, 1)
		j := open(st, 1, &told{})
		defer j.Close()
		end(j, 5)
		look(5, 1)
		// Another slice takes the shard after these five; the first one goes on writing.
		cp.Epoch, cp.Closed = 2, []sheet.Position{{Epoch: 1, Seq: 5}}
		if err := cp.Save(ctx, st, "r", 0); err != nil {
			t.Fatal(err)
		}
		end(j, 3)
		look(5, 1, 0)
		heir := open(st, 2, &told{})
		defer heir.Close()
		end(heir, 2)
		look(2, 1) // as a journal tells that was opened without the counts before
	})
}
