package pacer

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/core/frame"
)

// drain uses a scope as one who comes when it is told to, with always more to do, and returns when that was and how many
// permits there were.
func drain(t *testing.T, rules []Rule, times int) (at []time.Duration, got []int) {
	t.Helper()
	now, s := epoch, State{}
	for range times {
		next, g, _ := Decide(now, s, Ask{Owner: "a", N: bulkMost, Rules: inBulk(rules), Bulk: true})
		at, got = append(at, now.Sub(epoch).Round(time.Millisecond)), append(got, len(g.Permits))
		for _, p := range g.Permits {
			if p.At.Sub(now) > bulkAhead {
				t.Fatalf("%+v: a permit %v ahead", rules, p.At.Sub(now))
			}
		}
		now, s = g.AskAt, next
		if len(g.Permits) < bulkMost && !now.After(epoch.Add(at[len(at)-1])) {
			t.Fatalf("%+v: denied until %v, which is not later", rules, g.AskAt)
		}
	}
	return at, got
}

// Windows of a second are used at once, longer ones by the second, long ones whole; what the provider says of bursts holds.
func TestH17InBulkOneComesForWholeBursts(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		rules []Rule
		at    []time.Duration // 20 ms before each next burst, of windows that are enlarged
		got   []int
	}{
		{[]Rule{{Rate: 10, Per: s}}, []time.Duration{0, 1010 * ms, 2040 * ms}, []int{10, 10, 10}},
		{[]Rule{{Rate: 100, Per: 10 * s}}, []time.Duration{0, 1005 * ms, 2030 * ms}, []int{10, 10, 10}}, // 10.25 s in ten parts
		{[]Rule{{Rate: 3, Per: 6 * s}}, []time.Duration{0, 2040 * ms, 4100 * ms}, []int{1, 1, 1}},       // less than one a second
		{[]Rule{{Rate: 30, Per: time.Minute}}, []time.Duration{0, 60230 * ms}, []int{30, 30}},
		{[]Rule{{Rate: 10, Per: s, Burst: 5}}, []time.Duration{0, 495 * ms, 1010 * ms}, []int{5, 5, 5}},
		{[]Rule{{Rate: 10, Per: s, Burst: 1}}, []time.Duration{0, 83 * ms, 186 * ms}, []int{1, 1, 1}},     // spaced out, if that is declared
		{[]Rule{{Rate: 1000, Per: 10000 * s, Burst: 20}}, []time.Duration{0, 200080 * ms}, []int{20, 20}}, // one in 10.005 s
		{[]Rule{{Rate: 10, Per: s}, {Rate: 25, Per: time.Minute}},
			[]time.Duration{0, 1010 * ms, 2040 * ms, 60230 * ms, 61260 * ms, 62290 * ms}, []int{10, 10, 5, 10, 10, 5}},
	} {
		at, got := drain(t, tt.rules, len(tt.at))
		if fmt.Sprint(at) != fmt.Sprint(tt.at) || fmt.Sprint(got) != fmt.Sprint(tt.got) {
			t.Errorf("%+v:\n got %v at %v\nwant %v at %v", tt.rules, got, at, tt.got, tt.at)
		}
	}
}

// A part of a burst is not worth coming for, as long as the rest is near.
func TestH17InBulkPartsOfABurstAreGathered(t *testing.T) {
	rules := inBulk([]Rule{{Rate: 10, Per: time.Second}})
	s := State{}
	for i, n := range []int{3, 7} { // half a second apart
		now := epoch.Add(time.Duration(i) * 500 * time.Millisecond)
		_, s = grant(t, now, s, Ask{Owner: "a", N: n, Rules: rules, Bulk: true})
	}
	now := epoch.Add(600 * time.Millisecond)
	_, g, _ := Decide(now, s, Ask{Owner: "a", N: 10, Rules: rules, Bulk: true})
	if next, ask := g.Next.Sub(epoch), g.AskAt.Sub(epoch); next != 1030*time.Millisecond || ask != 1510*time.Millisecond {
		t.Errorf("the first permit is free after %v, and asking makes sense after %v; want 1.03 s, and 20 ms before 1.53 s", next, ask)
	}
}

func TestH17InBulkAScopeWithoutRulesIsHeldAsWell(t *testing.T) {
	s := State{Hold: epoch.Add(time.Minute).UnixNano()}
	_, g, _ := Decide(epoch, s, Ask{Owner: "a", N: 10, Bulk: true})
	if len(g.Permits) != 0 || g.Reason != Held || !g.AskAt.Equal(epoch.Add(time.Minute-bulkAhead)) {
		t.Errorf("%+v", g)
	}
}

// A minute of bursts fits the unit in which writes are billed, and what is compressed for that is read as what it was.
func TestStateOfManyBurstsFitsAUnit(t *testing.T) {
	rules, s, now := inBulk([]Rule{{Rate: 25, Per: time.Second}, {Rate: 1400, Per: time.Minute}}), State{}, epoch
	for i := range 58 {
		now = now.Add(1030*time.Millisecond + time.Duration(i*i)*time.Microsecond)
		_, s = grant(t, now, s, Ask{Owner: "a", N: 20 + i%6, Rules: rules, Bulk: true})
	}
	b, err := encode(s)
	if err != nil || len(b) > unit {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := frame.Open(b); err != nil {
		t.Errorf("it is not compressed, so nothing was tested: %v", err)
	}
	back, err := decode(b)
	if err != nil || fmt.Sprint(back) != fmt.Sprint(s) {
		t.Errorf("read back as %+v, %v; want %+v", back, err, s)
	}
	if _, err := decode(b[:len(b)-3]); err == nil {
		t.Error("a damaged state is read")
	}
}
