package pacer

import (
	"testing"
	"time"
)

func TestH16DeadlineOnlyMovesLater(t *testing.T) {
	var s State
	for _, step := range []struct {
		in, want time.Duration
		changed  bool
	}{{10, 10, true}, {5, 10, false}, {10, 10, false}, {20, 20, true}} {
		until, changed := s.observe(epoch, "acme", "me", Observation{Limited: true, Dispatched: epoch, Deadline: epoch.Add(step.in * time.Second)})
		if until.Sub(epoch) != step.want*time.Second || changed != step.changed {
			t.Errorf("deadline in %d s: held for %v, stored %v", step.in, until.Sub(epoch), changed)
		}
	}
	if s.Streak != 0 {
		t.Error("a refusal with a deadline is no bare one")
	}
}

func TestH14TenRefusalsAtOnceEscalateOnce(t *testing.T) {
	var s State
	bare := Observation{Limited: true, Dispatched: epoch, Cooldown: 10 * time.Second}
	now := epoch.Add(100 * time.Millisecond)
	first, _ := s.observe(now, "acme", "me", bare)
	if wait := first.Sub(now); wait < 10*time.Second || wait > 12500*time.Millisecond {
		t.Errorf("first cooldown %v, want 10 s and up to a quarter", wait)
	}
	for range 9 {
		now = now.Add(time.Millisecond)
		if until, changed := s.observe(now, "acme", "me", bare); changed || !until.Equal(first) {
			t.Errorf("a refusal of the same moment moved the hold to %v", until)
		}
	}
	bare.Dispatched = first.Add(time.Second)
	now = bare.Dispatched.Add(time.Second)
	second, _ := s.observe(now, "acme", "me", bare)
	if wait := second.Sub(now); s.Streak != 2 || wait < 20*time.Second || wait > 25*time.Second {
		t.Errorf("streak %d, cooldown %v; want 2 and 20 s and up to a quarter", s.Streak, wait)
	}
	// An answer that took longer than the cooldown: its call left before the escalation, but the refusal is news.
	bare.Dispatched = epoch
	now = second.Add(time.Minute)
	third, _ := s.observe(now, "acme", "me", bare)
	if s.Streak != 2 || third.Sub(now) < 20*time.Second {
		t.Errorf("streak %d, cooldown %v", s.Streak, third.Sub(now))
	}
}

func TestH14SuccessEndsTheStreak(t *testing.T) {
	s := State{Streak: 3, StreakAt: epoch.UnixNano()}
	ask := Ask{Owner: "a", N: 1, Rules: []Rule{{Rate: 1, Per: time.Second}}, Success: epoch.Add(-time.Second)}
	if next, _, _ := Decide(epoch.Add(time.Minute), s, ask); next.Streak != 3 {
		t.Error("a success of before the refusal ended the streak")
	}
	ask.Success = epoch.Add(time.Second)
	if next, _, _ := Decide(epoch.Add(time.Minute), s, ask); next.Streak != 0 {
		t.Error("the streak outlived a success")
	}
}
