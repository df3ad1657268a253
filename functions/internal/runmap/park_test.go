package runmap

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/bus"
)

// Others hear once of a shard that waits for long, whoever comes too early meanwhile, and again when it waits anew.
func TestALongParkIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{holds: 2, until: time.Hour}
		w := newWorld(t, p)
		w.register("r", "x\n1\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		slice := func() time.Time {
			var s SliceResult
			w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
			at, err := time.Parse(time.RFC3339, s.WakeAt)
			if err != nil || s.Outcome != "parked" {
				t.Fatalf("%+v, %v", s, err)
			}
			return at
		}
		told := func(n int) {
			t.Helper()
			if len(w.board.events) != n {
				t.Fatalf("%d events, want %d: %+v", len(w.board.events), n, w.board.events)
			}
		}
		wake := slice()
		told(1)
		if e := w.board.events[0]; e.Type != bus.Parked || *e.Detail.Shard != 0 || wake.Sub(e.Detail.WakeAt) > time.Second || wake.Before(e.Detail.WakeAt) {
			t.Errorf("told %+v, wakes at %v", e, wake)
		}
		time.Sleep(20 * time.Minute)
		slice() // too early: by a second delivery, or somebody who wants to see what happens
		told(1)
		time.Sleep(time.Until(wake))
		wake = slice() // the second hold
		told(2)
		if !w.board.events[1].Detail.WakeAt.After(w.board.events[0].Detail.WakeAt.Add(50 * time.Minute)) {
			t.Errorf("told %+v", w.board.events[1])
		}
		time.Sleep(time.Until(wake))
		var s SliceResult
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
		if told(2); s.Outcome != "done" {
			t.Errorf("%+v", s)
		}
	})
}

// The wait for the next minute's window is no news, and a bus that is out is no reason not to park.
func TestAShortParkIsNotTold(t *testing.T) {
	for wait, events := range map[time.Duration]int{time.Minute + time.Second: 0, 2 * time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &provider{holds: 1, until: wait})
			w.register("r", "x\n1\n")
			w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
			var s SliceResult
			w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
			if s.Outcome != "parked" || len(w.board.events) != events {
				t.Errorf("parked for %v: %+v, told %+v", wait, s, w.board.events)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &provider{holds: 1, until: time.Hour})
		w.board.broken = errors.New("the bus is out")
		w.register("r", "x\n1\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		var s SliceResult
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
		if s.Outcome != "parked" {
			t.Errorf("%+v", s)
		}
	})
}
