package gateway_test

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/hold"
	"sluice/internal/memory"
)

// hidden is a provider with limits that it does not tell.
type hidden struct {
	concurrency int           // refuses more with Retry-After: 1
	queue       int           // serves so many at once, and lets the others wait
	rate        int           // per second; refuses more until the window frees
	latency     time.Duration // of an answer
	jitter      bool

	mu       sync.Mutex
	running  int
	served   chan struct{}
	accepted []time.Time
	refused  []time.Time
	peak     int
}

func (h *hidden) Send(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
	if res := h.enter(); res != nil {
		time.Sleep(20 * time.Millisecond)
		return res, nil
	}
	if h.queue > 0 {
		h.served <- struct{}{}
	}
	time.Sleep(h.takes())
	if h.queue > 0 {
		<-h.served
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	return &gateway.Response{Status: 200}, ctx.Err()
}

// takes is the latency, spread out if it is jittery: most answers are faster, some take several times as long.
func (h *hidden) takes() time.Duration {
	if !h.jitter {
		return h.latency
	}
	h.mu.Lock()
	n := len(h.accepted)
	h.mu.Unlock()
	return time.Duration(float64(h.latency) * min(-math.Log(1-hold.Fraction(strconv.Itoa(n))), 5))
}

func (h *hidden) enter() *gateway.Response {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.served == nil {
		h.served = make(chan struct{}, max(h.queue, 1))
	}
	now := time.Now()
	wait := time.Duration(0)
	if h.concurrency > 0 && h.running >= h.concurrency {
		wait = time.Second
	}
	if n := len(h.accepted); h.rate > 0 && n >= h.rate {
		wait = max(wait, time.Second-now.Sub(h.accepted[n-h.rate]))
	}
	if wait > 0 {
		h.refused = append(h.refused, now)
		return &gateway.Response{Status: 429, Header: http.Header{"Retry-After": {strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)}}}
	}
	h.running++
	h.peak = max(h.peak, h.running)
	h.accepted = append(h.accepted, now)
	return nil
}

// crowd keeps asking for the given time, as the rows of a run do: many at once, each again when it was told.
func crowd(t *testing.T, e *gateway.Executor, rows int, until time.Time) {
	t.Helper()
	var wg sync.WaitGroup
	for range rows {
		wg.Go(func() {
			for time.Now().Before(until) {
				var wait time.Time
				err := e.Execute(t.Context(), []call.Attempt{{Tool: "acme.get"}}, func(_ int, a call.Answer) { wait = a.Until })
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(max(time.Until(wait), time.Millisecond))
			}
		})
	}
	wg.Wait()
}

// found is how a provider was used from a moment on.
func (h *hidden) found(from, to time.Time) (perSecond, refusedShare float64) {
	ok, not := 0, 0
	for _, at := range h.accepted {
		if at.After(from) && at.Before(to) {
			ok++
		}
	}
	for _, at := range h.refused {
		if at.After(from) && at.Before(to) {
			not++
		}
	}
	return float64(ok) / to.Sub(from).Seconds(), float64(not) / float64(ok+not)
}

// explore works on a provider that declares nothing, for ten minutes, with so many rows in each process.
func explore(t *testing.T, h *hidden, bulk bool, rows int, owners ...string) (start time.Time) {
	t.Helper()
	tbl := memory.New()
	start = time.Now()
	var wg sync.WaitGroup
	for _, owner := range owners {
		e := executor(t, tbl, owner, "cooldown: 10s", h)
		e.Pacer.Bulk = bulk
		wg.Go(func() { crowd(t, e, rows, start.Add(10*time.Minute)) })
	}
	wg.Wait()
	return start
}

// fastest is the default pace: five in 1.03 s.
const fastest = 5 / 1.03

// Limits that nobody declared are found, within the default pace, and kept to with few refusals; two processes find them
// together.
func TestH17HiddenLimitsAreFound(t *testing.T) {
	for name, tt := range map[string]*struct {
		hidden
		owners []string
		bound  float64 // calls per second
	}{
		"concurrency":                    {hidden{concurrency: 12, latency: 3 * time.Second}, []string{"a"}, 4},
		"concurrency, of two processes":  {hidden{concurrency: 12, latency: 3 * time.Second}, []string{"a", "b"}, 4},
		"one at a time":                  {hidden{concurrency: 1, latency: time.Second}, []string{"a"}, 1},
		"concurrency, answers that vary": {hidden{concurrency: 10, latency: 4 * time.Second, jitter: true}, []string{"a"}, 2.5},
		"rate":                           {hidden{rate: 2, latency: 50 * time.Millisecond}, []string{"a"}, 2},
		"rate, of two processes":         {hidden{rate: 2, latency: 50 * time.Millisecond}, []string{"a", "b"}, 2},
		"rate, in bulk":                  {hidden{rate: 2, latency: 50 * time.Millisecond}, []string{"a"}, 2},
		"concurrency, in bulk":           {hidden{concurrency: 6, latency: 2 * time.Second}, []string{"a"}, 3},
		"rate, of calls that overlap":    {hidden{rate: 3, latency: time.Second}, []string{"a"}, 3},
		"no refusals, but a queue":       {hidden{queue: 6, latency: 2 * time.Second}, []string{"a"}, 3},
		"nothing":                        {hidden{latency: 3 * time.Second}, []string{"a"}, fastest},
		"nothing, answers that vary":     {hidden{latency: 3 * time.Second, jitter: true}, []string{"a"}, fastest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &tt.hidden
				start := explore(t, h, strings.HasSuffix(name, "in bulk"), 32/len(tt.owners), tt.owners...)
				perSecond, refused := h.found(start.Add(2*time.Minute), start.Add(10*time.Minute))
				t.Logf("%.2f per second of %.2f (%.0f %%), %.1f %% refused, at most %d at once", perSecond, tt.bound, 100*perSecond/tt.bound, 100*refused, h.peak)
				if perSecond < 0.8*tt.bound || refused > 0.02 {
					t.Errorf("%.2f per second of %.2f, %.1f %% refused", perSecond, tt.bound, 100*refused)
				}
				all := append(append([]time.Time(nil), h.accepted...), h.refused...)
				slices.SortFunc(all, time.Time.Compare)
				for i := 5; i < len(all); i++ {
					if d := all[i].Sub(all[i-5]); d < time.Second {
						t.Fatalf("six calls within %v: the default pace is not kept", d)
					}
				}
				if h.queue > 0 && h.peak > 5*h.queue {
					t.Errorf("%d calls were kept waiting in a queue of %d", h.peak, h.queue)
				}
			})
		})
	}
}

// What was found is shared: a process that comes later begins with it.
func TestH17WhatWasFoundIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, h := memory.New(), &hidden{concurrency: 2, latency: 2 * time.Second}
		crowd(t, executor(t, tbl, "a", "cooldown: 10s", h), 8, time.Now().Add(2*time.Minute))
		later := time.Now()
		crowd(t, executor(t, tbl, "b", "cooldown: 10s", h), 8, later.Add(30*time.Second))
		perSecond, refused := h.found(later, later.Add(30*time.Second))
		if perSecond < 0.8 || refused > 0.08 { // one call a second; a test of the limit may be due
			t.Errorf("%.2f per second, %.1f %% refused", perSecond, 100*refused)
		}
	})
}

// A provider whose limit is gone is used more again, and one that takes less by now is asked for less.
func TestH17LimitsThatChangeAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, h := memory.New(), &hidden{concurrency: 3, latency: 2 * time.Second}
		e := executor(t, tbl, "a", "cooldown: 10s", h)
		stage := func(concurrency int, d time.Duration) (perSecond, refused float64) {
			h.mu.Lock()
			h.concurrency = concurrency
			h.mu.Unlock()
			from := time.Now()
			crowd(t, e, 24, from.Add(d))
			return h.found(from.Add(d/2), from.Add(d))
		}
		stage(3, 2*time.Minute)
		if perSecond, _ := stage(8, 10*time.Minute); perSecond < 0.75*4 {
			t.Errorf("of eight at once: %.2f per second, want near to 4", perSecond)
		}
		if perSecond, refused := stage(2, 5*time.Minute); perSecond < 0.75 || refused > 0.03 {
			t.Errorf("of two at once: %.2f per second, %.1f %% refused, want near to 1", perSecond, 100*refused)
		}
	})
}
