package pacer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

// hourly allows ten at once, and then nothing for an hour: what is granted twice or lost shows at once.
var hourly = []pacer.Rule{{Rate: 10, Per: time.Hour}}

// ofScope strikes writes of a scope's state; its name in the list is another item.
func ofScope(op tabletest.Op, key table.Key) bool { return op.IsWrite() && key.Sort == "state" }

func acquire(t *testing.T, p *pacer.Pacer, w pacer.Want) pacer.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), "acme", w)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestUncertainWriteIsRecognised(t *testing.T) {
	for name, kind := range map[string]tabletest.Kind{"not written": tabletest.NotDone, "written but reported as failed": tabletest.DoneButFailed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl := tabletest.NewFaulty(memory.New())
				p := pacer.New(tbl, "a")
				tbl.Inject(tabletest.Fault{Kind: kind, On: ofScope, Times: 1})
				if g := acquire(t, p, pacer.Want{N: 6, Rules: hourly}); len(g.Permits) != 6 {
					t.Errorf("%d permits of 6", len(g.Permits))
				}
				if g := acquire(t, p, pacer.Want{N: 6, Rules: hourly}); len(g.Permits) != 4 {
					t.Errorf("then %d permits, 4 were left", len(g.Permits))
				}
			})
		})
	}
}

func TestUncertainWriteThatWasWrittenOverIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		tbl := tabletest.NewFaulty(inner)
		a, b := pacer.New(tbl, "a"), pacer.New(inner, "b")
		tbl.Inject(tabletest.Fault{Kind: tabletest.DoneButFailed, On: ofScope, Times: 1})
		written := false
		tbl.OnOp(func(e tabletest.Event) {
			if e.Op == tabletest.OpPut && ofScope(e.Op, e.Keys[0]) && !written { // between a's write and a's reading it back
				written = true
				acquire(t, b, pacer.Want{N: 1, Rules: hourly})
			}
		})
		g := acquire(t, a, pacer.Want{N: 9, Rules: hourly})
		if len(g.Permits) != 0 {
			t.Errorf("%d permits: 9 that nobody can use, and b's one, are all there are", len(g.Permits))
		}
	})
}

func TestStoreThatFailsGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		p := pacer.New(tbl, "a")
		tbl.Inject(tabletest.Fault{Kind: tabletest.NotDone})
		if g, err := p.Acquire(t.Context(), "acme", pacer.Want{N: 1, Rules: hourly}); !errors.Is(err, tabletest.ErrInjected) || len(g.Permits) > 0 {
			t.Errorf("%d permits, error %v", len(g.Permits), err)
		}
		tbl.Heal()
		if g := acquire(t, p, pacer.Want{N: 10, Rules: hourly}); len(g.Permits) != 10 {
			t.Errorf("%d permits after the store came back", len(g.Permits))
		}
	})
}

func TestH16HoldThatCouldNotBeSharedIsKeptAndSharedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		a, b := pacer.New(tbl, "a"), pacer.New(tbl, "b")
		g := acquire(t, a, pacer.Want{N: 1, Rules: hourly})
		tbl.Inject(tabletest.Fault{Kind: tabletest.NotDone})
		deadline := time.Now().Add(time.Minute)
		until, err := a.Report(t.Context(), "acme", pacer.Observation{Limited: true, Dispatched: time.Now(), Deadline: deadline})
		if err == nil || !until.Equal(deadline) {
			t.Errorf("held until %v, error %v", until, err)
		}
		if a.Check(t.Context(), g.Permits[0]) {
			t.Error("a permit may be used within a hold that its own process met")
		}
		tbl.Heal()
		deadline = deadline.Add(time.Second)
		if _, err := a.Report(t.Context(), "acme", pacer.Observation{Limited: true, Dispatched: time.Now(), Deadline: deadline}); err != nil {
			t.Fatal(err)
		}
		if g := acquire(t, b, pacer.Want{N: 1, Rules: hourly}); g.Reason != pacer.Held || !g.Next.Equal(deadline) {
			t.Errorf("b: %+v, want held until %v", g, deadline)
		}
	})
}

func TestH16NothingIsAskedOfTheStoreWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		p := pacer.New(tbl, "a")
		deadline := time.Now().Add(time.Minute)
		o := pacer.Observation{Limited: true, Dispatched: time.Now(), Deadline: deadline}
		if _, err := p.Report(t.Context(), "acme", o); err != nil {
			t.Fatal(err)
		}
		before := len(tbl.Trace())
		for range 50 {
			if g := acquire(t, p, pacer.Want{N: 1, Rules: hourly}); g.Reason != pacer.Held || !g.Next.Equal(deadline) {
				t.Fatalf("%+v", g)
			}
			if until, err := p.Report(t.Context(), "acme", o); err != nil || !until.Equal(deadline) {
				t.Fatal(until, err)
			}
		}
		if n := len(tbl.Trace()) - before; n != 0 {
			t.Errorf("%d operations while held", n)
		}
		if free, why, _ := p.NextFree("acme"); why != pacer.Held || !free.Equal(deadline.Add(-pacer.Ahead)) {
			t.Errorf("next free %v", free)
		}
		time.Sleep(time.Until(deadline))
		if g := acquire(t, p, pacer.Want{N: 1, Rules: hourly}); len(g.Permits) != 1 {
			t.Errorf("after the hold: %+v", g)
		}
	})
}

func TestH12HoldOfAnotherOwnerVoidsAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := memory.New()
		a, b := pacer.New(tbl, "a"), pacer.New(tbl, "b")
		acquire(t, a, pacer.Want{N: 1, Rules: hourly})
		time.Sleep(1100 * time.Millisecond)
		permit := pacer.Permit{Scope: "acme", At: time.Now(), Valid: 125 * time.Millisecond}
		if !a.Check(t.Context(), permit) {
			t.Fatal("the permit is void already")
		}
		o := pacer.Observation{Limited: true, Dispatched: time.Now(), Deadline: time.Now().Add(time.Minute)}
		if _, err := b.Report(t.Context(), "acme", o); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // what a knows is too old now
		permit.At = time.Now()
		if a.Check(t.Context(), permit) {
			t.Error("the permit may be used within b's hold")
		}
	})
}

// A permit knows up to which hold its scope was known: one that was granted behind a hold is not voided by that one, but
// by every newer one that reaches past its moment.
func TestH12PermitIsVoidAfterANewerHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := memory.New()
		a, b := pacer.New(tbl, "a"), pacer.New(tbl, "b")
		hold := func(p *pacer.Pacer, d time.Duration) {
			o := pacer.Observation{Limited: true, Dispatched: time.Now(), Deadline: time.Now().Add(d)}
			if _, err := p.Report(t.Context(), "acme", o); err != nil {
				t.Fatal(err)
			}
		}
		hold(b, 100*time.Millisecond)
		g := acquire(t, a, pacer.Want{N: 2, Rules: hourly})
		if p := g.Permits[0]; p.Scope != "acme" || time.Until(p.Hold) != 100*time.Millisecond || p.At.Before(p.Hold) {
			t.Errorf("the permit proves %+v", p)
		}
		time.Sleep(100 * time.Millisecond)
		if !a.Check(t.Context(), g.Permits[0]) {
			t.Error("void by the hold that it was granted behind")
		}
		hold(a, time.Millisecond)
		if a.Check(t.Context(), g.Permits[1]) {
			t.Error("valid within a newer hold")
		}
		time.Sleep(2 * time.Millisecond)
		if a.Check(t.Context(), g.Permits[1]) {
			t.Error("valid after a newer hold, in which its moment lay")
		}
		if g := acquire(t, a, pacer.Want{N: 1, Rules: hourly}); len(g.Permits) != 1 || !a.Check(t.Context(), g.Permits[0]) {
			t.Errorf("no fresh permit: %+v", g)
		}
	})
}

func TestH12PermitEndsWithItsValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New(memory.New(), "a")
		g := acquire(t, p, pacer.Want{N: 1, Rules: []pacer.Rule{{Rate: 50, Per: time.Second}}})
		time.Sleep(15 * time.Millisecond) // half of the slack of 30 ms
		if !p.Check(t.Context(), g.Permits[0]) {
			t.Error("void within its validity")
		}
		time.Sleep(time.Millisecond)
		if p.Check(t.Context(), g.Permits[0]) {
			t.Error("valid after its validity")
		}
	})
}

func TestQ6RetriesGetThePermitsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		p := pacer.New(tbl, "a")
		tbl.Inject(tabletest.Fault{Kind: tabletest.Slow, On: ofScope, Delay: 10 * time.Millisecond, Times: 1})
		got := make(chan int, 3)
		ask := func(n, retries int, key int) {
			got <- key*100 + len(acquire(t, p, pacer.Want{N: n, Retries: retries, Rules: hourly}).Permits)
		}
		go ask(1, 0, 0) // its slow write lets the others queue up
		synctest.Wait()
		go ask(8, 0, 1)
		synctest.Wait()
		go ask(5, 4, 2)
		time.Sleep(time.Second)
		counts := map[int]int{}
		for range 3 {
			k := <-got
			counts[k/100] = k % 100
		}
		if counts[0] != 1 || counts[1] != 5 || counts[2] != 4 {
			t.Errorf("permits by ask: %v; want the 4 retries first and 5 for who came first", counts)
		}
	})
}

func TestR10AbandonedAskGivesItsSlotsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := tabletest.NewFaulty(memory.New())
		p := pacer.New(tbl, "a")
		tbl.Inject(tabletest.Fault{Kind: tabletest.Slow, On: ofScope, Delay: time.Second, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := p.Acquire(ctx, "acme", pacer.Want{N: 2, Rules: hourly, Concurrency: 2}); err == nil {
			t.Error("granted after the caller had gone")
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("a cancelled caller waited %v", d)
		}
		time.Sleep(2 * time.Second)
		if g := acquire(t, p, pacer.Want{N: 2, Rules: hourly, Concurrency: 2}); len(g.Permits) != 2 {
			t.Errorf("%d of 2 slots: %+v", len(g.Permits), g)
		}
	})
}
