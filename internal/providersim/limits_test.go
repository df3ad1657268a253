package providersim

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitHoldsInEveryWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim(t, Provider{Limits: []Limit{{Rate: 3, Per: sec}}})
		step := func(after time.Duration, want ...int) {
			t.Helper()
			time.Sleep(after)
			for i, got := range statuses(s, len(want)) {
				if (got == 429) != (want[i] == 429) {
					t.Errorf("at %v: request %d got %d, want %d", time.Now().Format("05.000"), i, got, want[i])
				}
			}
		}
		const ok = 200
		step(0, ok)                                // 0.000
		step(900*time.Millisecond, ok, ok, 429)    // 0.900: the third of this window, and one more
		step(99*time.Millisecond, 429)             // 0.999
		step(time.Millisecond, ok, 429)            // 1.000: exactly one second after the first
		step(899*time.Millisecond, 429)            // 1.899
		step(time.Millisecond, ok, ok, 429)        // 1.900: a bucket that refills evenly would have allowed more
		step(10*time.Second, ok, ok, ok, 429, 429) // refused ones do not count against the limit
		if r := report(s); r.Refused != 7 || r.Refused429["limit"] != 7 || r.Received != 16 || r.Windows[0].Max != 7 {
			t.Errorf("report: %+v", r)
		}
	})
}

func TestAnnouncements(t *testing.T) {
	for announce, want := range map[Announce][2]string{
		"":      {"3", ""}, // 2.3 s, rounded up
		Seconds: {"3", ""},
		Date:    {"Sat, 01 Jan 2000 00:00:03 GMT", ""}, // 00:00:02.5, rounded up
		Reset:   {"", "946684803"},                     // the same as a number
	} {
		t.Run(string(announce), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock starts at 2000-01-01
				s := sim(t, Provider{Limits: []Limit{{Rate: 1, Per: sec * 5 / 2, Announce: announce}}})
				statuses(s, 1)
				time.Sleep(200 * time.Millisecond)
				h := get(s, "/p/phones/a.example").Header
				if got := [2]string{h.Get("Retry-After"), h.Get("X-Ratelimit-Reset")}; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

func TestTheStricterLimitDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim(t, Provider{Limits: []Limit{{Rate: 2, Per: sec}, {Rate: 2, Per: min1, Announce: Date}}})
		statuses(s, 2)
		if got := get(s, "/p/phones/a.example").Header.Get("Retry-After"); got != "Sat, 01 Jan 2000 00:01:00 GMT" {
			t.Errorf("Retry-After: %q", got)
		}
	})
}

func TestTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim(t, Provider{})
		if err := s.StartOutage("p", 10*time.Second, Seconds); err != nil {
			t.Fatal(err)
		}
		at := func(offset time.Duration, early, holds int) {
			t.Helper()
			time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(offset)))
			statuses(s, 1)
			if r := report(s); r.TooEarly != early || r.Holds != holds {
				t.Errorf("at %v: %d too early in %d holds, want %d in %d", offset, r.TooEarly, r.Holds, early, holds)
			}
		}
		at(1500*time.Millisecond, 0, 1)  // 8.5 s left, announced as 9: the hold ends at 10.5
		at(1750*time.Millisecond, 0, 1)  // under way when it was announced
		at(1751*time.Millisecond, 1, 1)  // this one was not; it hears 9 s again, which ends at 10.751
		at(10*time.Second, 2, 1)         // the outage is over, but not what was announced
		at(10750*time.Millisecond, 3, 1) // the latest announcement counts
		at(10751*time.Millisecond, 3, 1)
		if r := report(s); r.Refused429["outage"] != 3 || r.Completed != 3 || r.Refused != 0 {
			t.Errorf("report: %+v", r)
		}
	})
}

func TestOutageBeginsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim(t, Provider{Outages: []Outage{{After: 3, For: 2 * sec, Announce: Date}}})
		got := statuses(s, 4)
		time.Sleep(2 * time.Second)
		got = append(got, statuses(s, 1)...)
		if got[2] == 429 || got[3] != 429 || got[4] == 429 {
			t.Errorf("statuses: %v", got)
		}
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim(t, Provider{Concurrency: 2, Slow: 1000, SlowBy: sec})
		for range 3 {
			go get(s, "/p/phones/a.example")
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if r := report(s); r.Refused429["concurrency"] != 1 || r.MaxInFlight != 2 || r.Completed != 2 {
			t.Errorf("report: %+v", r)
		}
	})
}
