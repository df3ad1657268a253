package pacer

import (
	"testing"
	"time"
)

func ofFour(owner string, inUse, n int) Ask {
	return Ask{Owner: owner, N: n, InUse: inUse, Concurrency: 4, Rules: []Rule{{Rate: 1000, Per: time.Second}}}
}

func TestConcurrencyIsSharedFairlyWhenSeveralWait(t *testing.T) {
	g, s := grant(t, epoch, State{}, ofFour("a", 0, 9))
	if len(g.Permits) != 4 || g.Reason != Concurrency {
		t.Fatalf("a alone got %d of 4, reason %q", len(g.Permits), g.Reason)
	}
	s, g, changed := Decide(epoch, s, ofFour("b", 0, 9))
	if len(g.Permits) != 0 || !changed {
		t.Fatalf("b got %d while a has all; its wish stored: %v", len(g.Permits), changed)
	}
	if _, _, again := Decide(epoch.Add(100*time.Millisecond), s, ofFour("b", 0, 9)); again {
		t.Error("a wish that is known already is written again")
	}
	now := epoch.Add(300 * time.Millisecond)
	s, g, _ = Decide(now, s, ofFour("a", 2, 9)) // two of a's calls are done
	if len(g.Permits) != 0 {
		t.Errorf("a keeps %d slots over its share while b waits", len(g.Permits))
	}
	s, g, _ = Decide(now, s, ofFour("b", 0, 9))
	if len(g.Permits) != 2 {
		t.Errorf("b got %d, its share is 2", len(g.Permits))
	}
	s, g, _ = Decide(now, s, ofFour("c", 0, 1))
	if len(g.Permits) != 0 {
		t.Error("c got a fifth slot")
	}
	_, g, _ = Decide(now, s, ofFour("a", 1, 1)) // one each from now on
	if len(g.Permits) != 0 {
		t.Error("a took a slot that c waits for")
	}
}

func TestConcurrencyLeaseEndsWithItsOwner(t *testing.T) {
	ask := ofFour("gone", 0, 4)
	ask.LeaseFor = 30 * time.Second
	_, s := grant(t, epoch, State{}, ask)
	end := epoch.Add(90 * time.Second) // the longest call and LeaseFor
	if _, g, _ := Decide(end.Add(-time.Second), s, ofFour("b", 0, 1)); len(g.Permits) != 0 {
		t.Error("a slot of a call that may still run was given away")
	}
	if _, g, _ := Decide(end, s, ofFour("b", 0, 4)); len(g.Permits) != 4 {
		t.Errorf("after the owner's end: %d of 4", len(g.Permits))
	}
}

func TestConcurrencyIsNotTakenWithoutPermits(t *testing.T) {
	ask := ofFour("a", 0, 4)
	ask.Rules = []Rule{{Rate: 1, Per: time.Hour}}
	g, s := grant(t, epoch, State{}, ask)
	if len(g.Permits) != 1 || g.Reason != Window || s.Leases["a"].N != 1 {
		t.Errorf("%d permits, reason %q, %d slots; want 1, window, 1", len(g.Permits), g.Reason, s.Leases["a"].N)
	}
	if _, _, changed := Decide(epoch, s, ask); changed {
		t.Error("a denial by a full window was written")
	}
}
