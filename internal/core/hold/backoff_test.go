package hold

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v, want %v to %v", what, got, low, high)
	}
}

func TestH14CooldownGrowsToItsCap(t *testing.T) {
	for streak, want := range map[int]time.Duration{
		-1: 10 * time.Second, 0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second,
		5: 160 * time.Second, 6: 5 * time.Minute, 7: 5 * time.Minute, math.MaxInt: 5 * time.Minute,
	} {
		between(t, fmt.Sprint("streak ", streak), Cooldown(10*time.Second, streak, "acme"), want, want*5/4)
	}
	between(t, "no base", Cooldown(0, 1, "acme"), 10*time.Second, 12500*time.Millisecond)
	between(t, "a base over the cap is kept", Cooldown(time.Hour, 3, "acme"), time.Hour, 75*time.Minute)
	between(t, "the longest base", Cooldown(1<<62, 9, "acme"), 1<<62, math.MaxInt64)
}

func TestBackoffGrowsToItsCap(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 500 * time.Millisecond, 1: time.Second, 4: 8 * time.Second, 6: 30 * time.Second, 1000: 30 * time.Second,
	} {
		between(t, fmt.Sprint("attempt ", n), Backoff(n, "call"), want, want*5/4)
	}
}

func TestH14JitterRepeatsAndSpreads(t *testing.T) {
	var sum float64
	const n = 1000
	for i := range n {
		key := fmt.Sprint("call-", i)
		if Backoff(3, key) != Backoff(3, key) {
			t.Fatal("the same call backs off differently")
		}
		f := Fraction(key)
		if f < 0 || f >= 1 {
			t.Fatalf("fraction %v", f)
		}
		sum += f
	}
	if mean := sum / n; mean < 0.45 || mean > 0.55 {
		t.Errorf("mean of jitter %v, want about 0.5", mean)
	}
}
