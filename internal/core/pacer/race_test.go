package pacer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

// distant is a table that takes its time for every request.
type distant struct {
	table.Table
	takes time.Duration
}

func (d distant) Get(ctx context.Context, k table.Key) (table.Item, error) {
	time.Sleep(d.takes / 2)
	defer time.Sleep(d.takes / 2)
	return d.Table.Get(ctx, k)
}

func (d distant) Put(ctx context.Context, i table.Item, cond table.If) error {
	time.Sleep(d.takes / 2)
	defer time.Sleep(d.takes / 2)
	return d.Table.Put(ctx, i, cond)
}

// Where the store is slow, owners who race for one scope stand back for as long as the others' writes take, and read what
// has become of it before they write again: else most writes would lose, and giving a lease back would take for ever.
func TestOwnersWhoRaceOnASlowStoreStandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owners, rounds = 5, 10
		meter := table.Meter(distant{memory.New(), 150 * time.Millisecond})
		want := pacer.Want{N: 5, Rules: []pacer.Rule{{Rate: 1000, Per: time.Second}}, Concurrency: 1000, Longest: time.Second}
		var wg sync.WaitGroup
		for i := range owners {
			wg.Go(func() {
				p := pacer.New(meter, fmt.Sprint(i))
				p.Bulk = true
				for range rounds {
					g, err := p.Acquire(t.Context(), "s", want)
					if err != nil || len(g.Permits) != 5 {
						t.Errorf("%d permits, %v", len(g.Permits), err)
					}
					time.Sleep(100 * time.Millisecond) // the calls
					p.Done("s", len(g.Permits))
					if err := p.Release(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second)
				}
			})
		}
		wg.Wait()
		if n, needed := meter.Usage().WriteUnits, int64(2*owners*rounds); n > needed*5/2 {
			t.Errorf("%d writes, %d are needed", n, needed)
		}
	})
}
