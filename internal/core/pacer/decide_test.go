package pacer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tooMany looks for a window of length per with more than rate dispatches, by looking at every window that begins
// with a dispatch. It shares nothing with the pacer.
func tooMany(sent []time.Time, rate int, per time.Duration) error {
	sent = slices.Clone(sent)
	slices.SortFunc(sent, time.Time.Compare)
	for i, first := range sent {
		n := 0
		for _, t := range sent[i:] {
			if t.Sub(first) < per {
				n++
			}
		}
		if n > rate {
			return fmt.Errorf("%d dispatches in the %v from %v, allowed are %d", n, per, first, rate)
		}
	}
	return nil
}

func drawRules(t *rapid.T) []Rule {
	pers := []time.Duration{50 * time.Millisecond, time.Second, 7 * time.Second, 15 * time.Second, time.Minute}
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{Rate: rapid.IntRange(1, 30).Draw(t, "rate"), Per: rapid.SampledFrom(pers).Draw(t, "per")}
		r.Burst = rapid.IntRange(0, r.Rate).Draw(t, "burst")
		return r
	}), 1, 3, func(r Rule) Rule { return r }).Draw(t, "rules")
}

func TestH17NoWindowIsEverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, bulk := drawRules(t), rapid.Bool().Draw(t, "bulk")
		if bulk {
			rules = inBulk(rules)
		}
		limit := rapid.SampledFrom([]int{2, 5, maxRuns}).Draw(t, "runs")
		now, s := epoch, State{}
		var sent []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "asks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pause")))
			ask := Ask{
				Owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"), Rules: rules,
				N:    rapid.IntRange(1, 40).Draw(t, "n"),
				Lead: time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "lead")),
				Bulk: bulk,
			}
			next, g, changed := Decide(now, s, ask)
			if changed != (len(g.Permits) > 0) {
				t.Fatalf("changed=%v with %d permits", changed, len(g.Permits))
			}
			next.Log = next.Log.compact(limit)
			for _, p := range g.Permits {
				if p.At.Before(now) || p.At.After(now.Add(ask.Lead+horizon(bulk))) {
					t.Fatalf("a permit %v from now", p.At.Sub(now))
				}
				// Used at any moment of its validity, or never.
				late := time.Duration(rapid.Int64Range(-1, int64(p.Valid)).Draw(t, "late"))
				if late >= 0 {
					sent = append(sent, p.At.Add(late))
				}
			}
			if len(g.Permits) < ask.N && !g.Next.After(now) {
				t.Fatalf("denied until %v, which is not later than now", g.Next)
			}
			s = next
		}
		for _, r := range rules {
			if err := tooMany(sent, r.Rate, r.Per); err != nil {
				t.Fatalf("rule %+v: %v", r, err)
			}
		}
	})
}

func TestH17DenialTellsTheEarliestMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		s := State{}
		_, s = grant(t, epoch, s, Ask{Owner: "a", Rules: rules, N: 1000})
		_, g, _ := Decide(epoch, s, Ask{Owner: "a", Rules: rules, N: 1})
		if len(g.Permits) > 0 {
			t.Fatalf("the horizon was not used up: %v", g.Permits)
		}
		if _, at, _ := Decide(g.Next, s, Ask{Owner: "a", Rules: rules, N: 1}); len(at.Permits) != 1 || !at.Permits[0].At.Equal(g.Next) {
			t.Fatalf("asked at the announced moment: %+v", at)
		}
		if g.AskAt.Before(g.Next.Add(-Ahead)) || g.AskAt.After(g.Next) {
			t.Fatalf("ask at %v for %v", g.AskAt, g.Next)
		}
		if f := Forecast(epoch, s, rules, 1); !f.Equal(g.Next) {
			t.Fatalf("forecast %v, want %v", f, g.Next)
		}
	})
}

func grant(t interface{ Fatalf(string, ...any) }, now time.Time, s State, ask Ask) (Grant, State) {
	next, g, _ := Decide(now, s, ask)
	if len(g.Permits) == 0 {
		t.Fatalf("nothing granted: %+v", g)
	}
	return g, next
}

func TestH17DefaultsOfBurst(t *testing.T) {
	tests := []struct {
		rule        Rule
		now, within int // permits at once, and within the horizon of 400 ms
	}{
		{Rule{Rate: 50, Per: time.Second}, 1, 20},             // every 20.6 ms
		{Rule{Rate: 50, Per: time.Second, Burst: 10}, 10, 29}, // 10 at once, then every 20.6 ms
		{Rule{Rate: 600, Per: time.Minute}, 600, 600},         // a burst
		{Rule{Rate: 600, Per: time.Minute, Burst: 1}, 1, 4},   // every 100.4 ms
		{Rule{Rate: 10, Per: 10 * time.Second}, 1, 1},         // still a short window
		{Rule{Rate: 3, Per: time.Second, Burst: 99}, 3, 3},    // never more than the rate
		{Rule{Rate: 1_000_000, Per: time.Second}, 1, 388_350}, // every 1.03 µs
		{Rule{Rate: 100, Per: 50 * time.Millisecond}, 1, 667}, // every 0.6 ms: the slack is at least 10 ms
		{Rule{Rate: 1, Per: 24 * time.Hour}, 1, 1},            // one a day
		{Rule{Rate: 0, Per: 0}, 1, 37},                        // nonsense is read as 1 per ms, with the least slack
	}
	for _, tt := range tests {
		g, _ := grant(t, epoch, State{}, Ask{Owner: "a", N: 1_000_000, Rules: []Rule{tt.rule}})
		now := 0
		for _, p := range g.Permits {
			if p.At.Equal(epoch) {
				now++
			}
		}
		if now != tt.now || len(g.Permits) != tt.within {
			t.Errorf("%+v: %d at once and %d in all, want %d and %d", tt.rule, now, len(g.Permits), tt.now, tt.within)
		}
	}
}

func TestH17SlackOfWindows(t *testing.T) {
	for per, want := range map[time.Duration]time.Duration{
		50 * time.Millisecond: 10 * time.Millisecond, time.Second: 30 * time.Millisecond, 10 * time.Second: 250 * time.Millisecond,
		time.Minute: 250 * time.Millisecond, time.Hour: 3600 * time.Millisecond, 24 * time.Hour: 5 * time.Second,
	} {
		if got := (Rule{Rate: 1, Per: per}).slack(); got != want {
			t.Errorf("slack of %v: %v, want %v", per, got, want)
		}
	}
}

func TestH17ForecastStaggers(t *testing.T) {
	rules := []Rule{{Rate: 600, Per: time.Minute}}
	_, s := grant(t, epoch, State{}, Ask{Owner: "a", N: 600, Rules: rules})
	window := time.Minute + 250*time.Millisecond
	for k, want := range map[int]time.Duration{1: window, 600: window, 601: 2 * window, 1201: 3 * window} {
		if got := Forecast(epoch, s, rules, k).Sub(epoch).Round(time.Microsecond); got != want { // intervals are rounded up
			t.Errorf("permit %d in %v, want %v", k, got, want)
		}
	}
	spaced := []Rule{{Rate: 10, Per: time.Second}}
	if got := Forecast(epoch, State{}, spaced, 11).Sub(epoch); got != 1030*time.Millisecond {
		t.Errorf("the 11th of 10/s in %v", got)
	}
}

func TestH17OtherOwnersRulesAreCharged(t *testing.T) {
	short, long := []Rule{{Rate: 10, Per: time.Second}}, []Rule{{Rate: 5, Per: time.Minute}}
	_, s := grant(t, epoch, State{}, Ask{Owner: "a", N: 2, Rules: long})
	g, s := grant(t, epoch, s, Ask{Owner: "b", N: 2, Rules: short})
	if len(g.Permits) != 2 {
		t.Fatalf("b got %d", len(g.Permits))
	}
	g, s = grant(t, epoch, s, Ask{Owner: "a", N: 10, Rules: long})
	if len(g.Permits) != 1 {
		t.Errorf("a got %d more of 5 per minute, of which 4 are used", len(g.Permits))
	}
	later := epoch.Add(2 * time.Minute)
	_, s = grant(t, later, s, Ask{Owner: "b", N: 1, Rules: short})
	if len(s.Rules) != 1 {
		t.Errorf("a rule that nobody used for its window is still kept: %+v", s.Rules)
	}
}

func TestR13ClockThatJumpsBackDelaysByOneWindowAtMost(t *testing.T) {
	for _, r := range []Rule{{Rate: 50, Per: time.Second}, {Rate: 600, Per: time.Minute}} {
		ask := Ask{Owner: "a", N: 600, Rules: []Rule{r}, Concurrency: 10_000}
		_, s := grant(t, epoch, State{}, ask)
		back := epoch.Add(-time.Hour)
		_, g, _ := Decide(back, s, ask)
		wait := g.Next.Sub(back)
		if len(g.Permits) > 0 {
			wait = g.Permits[0].At.Sub(back)
		}
		if wait < 0 || wait > r.Per+r.slack() {
			t.Errorf("%+v: after the clock went back by an hour the wait is %v", r, wait)
		}
		if len(g.Permits) > 0 && r.Per == time.Minute {
			t.Errorf("%d permits on top of a full window", len(g.Permits))
		}
	}
}

func TestH16HoldStopsGrantsUntilItsEnd(t *testing.T) {
	s := State{Hold: epoch.Add(200 * time.Millisecond).UnixNano()}
	ask := Ask{Owner: "a", N: 1, Rules: []Rule{{Rate: 50, Per: time.Second}}}
	g, _ := grant(t, epoch, s, ask)
	if !g.Permits[0].At.Equal(epoch.Add(200 * time.Millisecond)) {
		t.Errorf("a permit at %v within a hold", g.Permits[0].At)
	}
	s.Hold = epoch.Add(time.Hour).UnixNano()
	_, g, changed := Decide(epoch, s, ask)
	if changed || g.Reason != Held || !g.Next.Equal(epoch.Add(time.Hour)) {
		t.Errorf("while held: %+v, stored: %v", g, changed)
	}
}

func TestMergedRunsNeverCountTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l grantLog
		var exact []int64
		at := int64(1_000_000)
		for range rapid.IntRange(1, 200).Draw(t, "grants") {
			at += rapid.SampledFrom([]int64{0, 0, 1, 7, 100, 100, 100, 5000}).Draw(t, "gap")
			l = l.add(at)
			exact = append(exact, at)
		}
		if diff := cmp.Diff(exact, times(l)); diff != "" {
			t.Fatalf("the log is not what was added: %s", diff)
		}
		got := times(l.compact(rapid.IntRange(1, 8).Draw(t, "limit")))
		if len(got) != len(exact) || got[len(got)-1] != exact[len(exact)-1] || !slices.IsSorted(got) {
			t.Fatalf("%d of %d grants, the last at %d, want %d", len(got), len(exact), got[len(got)-1], exact[len(exact)-1])
		}
		for i := range got {
			if got[i] < exact[i] {
				t.Fatalf("grant %d counts at %d, was given at %d", i, got[i], exact[i])
			}
		}
	})
}

func times(l grantLog) (all []int64) {
	for _, r := range l {
		for i := range r.count {
			all = append(all, r.at(i))
		}
	}
	return all
}

func TestLongWindowUsedBySinglesStaysExactEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rules := []Rule{{Rate: 600, Per: time.Minute}}
	now, s, n := epoch, State{}, 0
	for now.Before(epoch.Add(3 * time.Minute)) {
		next, g, _ := Decide(now, s, Ask{Owner: "a", N: 1, Rules: rules})
		s, n = next, n+len(g.Permits)
		now = now.Add(time.Duration(60+random.IntN(40)) * time.Millisecond)
	}
	if n < 1700 { // 3 windows of 600, less what merging costs; the asks alone would make 2,250
		t.Errorf("%d grants in three windows of 600", n)
	}
}

func TestStateStaysSmall(t *testing.T) {
	rules := []Rule{{Rate: 100_000, Per: time.Second}, {Rate: 100_000, Per: time.Second, Burst: 500},
		{Rate: 3_000_000, Per: time.Minute}, {Rate: 50_000_000, Per: time.Hour}}
	s, now := State{}, epoch
	for i := range 3000 {
		next, _, _ := Decide(now, s, Ask{Owner: fmt.Sprint("owner-", i%20), N: 1 + i*i%700, Rules: rules, Concurrency: 5000})
		s = next
		now = now.Add(time.Duration(i*i%1_000_003) * 50)
	}
	b, err := encode(s)
	if err != nil || len(b) > 8<<10 {
		t.Errorf("the state takes %d bytes, error %v", len(b), err)
	}
	back, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back, cmp.AllowUnexported(run{}, State{}, ruleState{}, lease{})); diff != "" {
		t.Errorf("read back: %s", diff)
	}
}

func FuzzDecodeState(f *testing.F) {
	st, _, _ := Decide(epoch, State{}, Ask{Owner: "a", N: 7, Rules: []Rule{{Rate: 9, Per: time.Hour}}, Concurrency: 3})
	b, err := encode(st)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"v":1,"log":[1,2]}`))
	f.Add([]byte(`{"v":1,"rules":[{"r":0,"p":0,"b":0}],"log":[1,0,9000000000000000000,2,0,9000000000000000000]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		Decide(epoch, s, Ask{Owner: "a", N: 3, Rules: []Rule{{Rate: 9, Per: time.Hour}}, Concurrency: 3}) // must not panic
	})
}
