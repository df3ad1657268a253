package pacer

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const second = int64(time.Second)

// answers of one second each, of calls that waited for others.
func answersOf(n int) Sample {
	return Sample{N: n, Total: time.Duration(n) * time.Second, Peak: 1, Tight: true}
}

func TestAdaptGrowsByHalfACallAndAfterARefusalByOneARound(t *testing.T) {
	a := &adapt{Limit: 4}
	a.learn(10*second, 0, 0, answersOf(4))
	if a.Limit != 6 {
		t.Errorf("after four answers of four calls: %v, want 6", a.Limit)
	}
	a.refuse(20*second, second/5, 19*second, 7)
	if a.Limit != 4.5 || a.Top != 7 { // three quarters of what was allowed
		t.Errorf("after a refusal with 7 in flight: %v, at most %d", a.Limit, a.Top)
	}
	if a.refuse(20*second+1, second/5, 19*second, 7) {
		t.Error("two refusals of the same moment count as two")
	}
	a.learn(25*second, second/5, 0, answersOf(9)) // two rounds of 4.5
	if a.Limit != 6 {
		t.Errorf("it went up to %v; next to what was refused is 6", a.Limit)
	}
	a.learn(26*second, second/5, 0, answersOf(9))
	if a.Limit != 6 {
		t.Errorf("what was refused was tried again at once: %v", a.Limit)
	}
}

func TestAdaptTestsWhatItFoundMoreAndMoreRarely(t *testing.T) {
	a := &adapt{Limit: 10}
	now := 10 * second
	for _, want := range []time.Duration{20, 40, 80, 160, 300, 300} {
		a.refuse(now, second/5, now-second/10, 11)
		if wait := time.Duration(a.Test - now); wait != want*time.Second {
			t.Errorf("the next test comes after %v, want %d s", wait, want)
		}
		now = a.Test
		for range 20 {
			if a.allowed() <= 10 {
				a.learn(now, second/5, 0, answersOf(3))
			}
		}
		if a.allowed() != 11 {
			t.Errorf("the test did not come: %v", a.Limit)
		}
	}
	a.learn(now, second/5, 0, answersOf(50)) // it takes more by now
	if a.Top != 0 || a.Wait != 0 {
		t.Errorf("a limit that is gone is kept: %d", a.Top)
	}
}

func TestAdaptSlowsDownWhereCallsDoNotOverlap(t *testing.T) {
	a, rule := &adapt{Limit: 4}, second/5
	a.refuse(10*second, rule, 9*second, 1)
	if a.Limit != 4 || a.Every != rule*4/3 {
		t.Errorf("%v calls, one each %v; want 4 and four thirds of 200 ms", a.Limit, time.Duration(a.Every))
	}
	a.refuse(20*second, rule, 19*second, 1)
	if a.Every/1000 != rule*16/9/1000 {
		t.Errorf("then one each %v", time.Duration(a.Every))
	}
	a.learn(22*second, rule, 0, answersOf(1000))
	if a.Every < a.Floor || a.Every > a.Floor*12/11 {
		t.Errorf("it went back to one each %v, refused was %v", time.Duration(a.Every), time.Duration(a.Floor))
	}
}

func TestAdaptHoldsBackWhenAnswersBecomeSlow(t *testing.T) {
	a := &adapt{Limit: 20}
	a.learn(10*second, second/5, 0, answersOf(64))
	was := a.Limit
	slow := answersOf(64)
	slow.Total *= 3
	a.learn(100*second, second/5, 0, slow)
	if a.Limit != was*slowCut {
		t.Errorf("three times as slow: %v of %v calls", a.Limit, was)
	}
	a.learn(100*second+1, second/5, 0, slow)
	if a.Limit != was*slowCut {
		t.Error("it held back again before the first time could show")
	}
}

func TestAdaptOfTheStateIsNotChangedInPlace(t *testing.T) {
	ask := Ask{Owner: "a", N: 1, Concurrency: 4, Adaptive: true, Rules: []Rule{{Rate: 5, Per: time.Second}}}
	first, _, _ := Decide(epoch, State{}, ask)
	ask.Seen = answersOf(4)
	second, _, _ := Decide(epoch.Add(10*time.Second), first, ask)
	if first.Adapt.Limit != 4 || second.Adapt.Limit != 6 {
		t.Errorf("%v, then %v", first.Adapt.Limit, second.Adapt.Limit)
	}
	b, err := encode(second)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := decode(b); err != nil || *back.Adapt != *second.Adapt {
		t.Errorf("%+v, %v", back.Adapt, err)
	}
	if old, err := decode([]byte(`{"v":1,"by":"x#1"}`)); err != nil || old.Adapt != nil { // of a version that knew nothing of it
		t.Errorf("%+v, %v", old.Adapt, err)
	}
}

// Whatever is seen, what is allowed stays within its bounds, and a call can be made.
func TestAdaptStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now := &adapt{Limit: float64(rapid.IntRange(1, 8).Draw(t, "start"))}, int64(0)
		rule := rapid.Int64Range(1, 2*second).Draw(t, "rule")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 400*second).Draw(t, "passed")
			if rapid.Bool().Draw(t, "refused") {
				a.refuse(now, rule, now-rapid.Int64Range(0, 20*second).Draw(t, "ago"), rapid.IntRange(1, 200).Draw(t, "in flight"))
			} else {
				n := rapid.IntRange(0, 200).Draw(t, "answers")
				a.learn(now, rule, rapid.IntRange(0, 60).Draw(t, "others"), Sample{N: n, Tight: rapid.Bool().Draw(t, "tight"),
					Total: time.Duration(n) * time.Duration(rapid.Int64Range(0, 100*second).Draw(t, "latency")), Peak: rapid.IntRange(0, 64).Draw(t, "peak")})
			}
			if a.allowed() < 1 || a.Limit > MaxAdaptive || a.Limit < 1 || a.every() < 0 || a.every() > int64(slowest) || a.Top < 0 || a.Wait > int64(lastProbe) {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// What was found out is told, and that there was nothing to find out yet.
func TestFindingsAreTold(t *testing.T) {
	var s State
	if got := s.standing("acme-1", epoch); got.Found != nil {
		t.Errorf("%+v", got.Found)
	}
	s.Adapt = &adapt{Limit: 6.7, Top: 9, Floor: int64(200 * time.Millisecond), Every: int64(250 * time.Millisecond), Test: epoch.Add(time.Minute).UnixNano(),
		Lat: float64(30 * time.Millisecond), Best: float64(20 * time.Millisecond)}
	want := Found{Concurrency: 6, Refused: 9, Every: 250 * time.Millisecond, RefusedAt: 200 * time.Millisecond, Test: epoch.Add(time.Minute).UTC(),
		Latency: 30 * time.Millisecond, Best: 20 * time.Millisecond}
	if got := s.standing("acme-1", epoch); got.Found == nil || *got.Found != want {
		t.Errorf("%+v, want %+v", got.Found, want)
	}
}
