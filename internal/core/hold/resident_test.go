package hold

import (
	"testing"
	"time"
)

func TestR1Budget(t *testing.T) {
	b := DefaultBudget()
	for _, tt := range []struct {
		wait, elapsed time.Duration
		want          bool
	}{
		{5 * time.Second, 0, true},
		{5*time.Second + 1, 0, false},
		{2 * time.Second, 3 * time.Second, true},
		{2 * time.Second, 3*time.Second + 1, false},
		{0, 4999 * time.Millisecond, true},
		{0, 5 * time.Second, false}, // an empty wait counts as 1 ms
		{-time.Hour, 4999*time.Millisecond + 1, false},
		{5 * time.Second, -time.Hour, true}, // a clock that went back gives nothing away
		{5*time.Second + 1, -time.Hour, false},
	} {
		if got := b.Resident(tt.wait, tt.elapsed); got != tt.want {
			t.Errorf("wait %v after %v: %v", tt.wait, tt.elapsed, got)
		}
	}
	if (Budget{}).Resident(0, 0) {
		t.Error("no budget allows no wait")
	}
}

func TestR1ElapsedIncludesEverythingSinceTheFirstWait(t *testing.T) {
	var r Residency
	if r.Elapsed(now) != 0 {
		t.Error("time passes before the first wait")
	}
	wait, ok := r.Wait(now, now.Add(2*time.Second), DefaultBudget())
	if !ok || wait != 2*time.Second {
		t.Fatalf("first wait: %v, %v", wait, ok)
	}
	later := now.Add(4 * time.Second) // 2 s of waiting and 2 s of an exchange
	if _, ok := r.Wait(later, later.Add(1001*time.Millisecond), DefaultBudget()); ok {
		t.Error("the exchange did not count")
	}
}

func TestR2EmptyHoldsSpendTheBudget(t *testing.T) {
	var r Residency
	n := 0
	for ; n < 10_000; n++ { // the clock stands still
		wait, ok := r.Wait(now, now.Add(-time.Hour), DefaultBudget())
		if !ok {
			break
		}
		if wait < time.Millisecond {
			t.Fatalf("a wait of %v", wait)
		}
	}
	if n != 5000 {
		t.Errorf("%d empty holds of at least 1 ms fitted 5 s", n)
	}
}

func TestR2SpentIsSticky(t *testing.T) {
	var r Residency
	if _, ok := r.Wait(now, now.Add(time.Minute), DefaultBudget()); ok || !r.Spent {
		t.Fatal("a minute fitted")
	}
	if _, ok := r.Wait(now, now, DefaultBudget()); ok {
		t.Error("spent, and then a short wait was resident")
	}
	again := Residency{Spent: true} // as restored after a park
	if _, ok := again.Wait(now, now, DefaultBudget()); ok {
		t.Error("the mark was lost by a park")
	}
}

func TestH4WakeAt(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, 0: time.Second, 999 * time.Millisecond: time.Second, time.Second: time.Second, time.Hour: time.Hour,
	} {
		if got := WakeAt(now, now.Add(in)).Sub(now); got != want {
			t.Errorf("earliest deadline in %v: wakes in %v, want %v", in, got, want)
		}
	}
}
