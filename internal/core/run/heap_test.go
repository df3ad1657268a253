package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

// heap is memory that is as full as the test says.
type heap struct {
	mu        sync.Mutex
	share     int64 // percent
	cycle     uint64
	collected int
}

func (h *heap) Use() (used, limit int64, cycle uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cycle++
	return h.share, 100, h.cycle
}

func (h *heap) Collect() { h.mu.Lock(); h.collected++; h.mu.Unlock() }

func (h *heap) set(share int64) { h.mu.Lock(); h.share = share; h.mu.Unlock() }

// gauge counts the calls under way, at their most since it was read last.
type gauge struct {
	*provider
	mu        sync.Mutex
	now, most int
}

func (g *gauge) answer(a call.Attempt, nth int) call.Answer {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
	return echo(a, nth)
}

func (g *gauge) read() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := g.most
	g.most = g.now
	return most
}

// Memory gets full, fuller, and empty again while a run is on: the rows at work become fewer, down to one, and more again.
// A number that somebody has asked for is kept until memory is nearly gone.
func TestM7ConcurrencyFollowsMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		asked  int
		calm   int // 50 %
		full   int // 75 %
		brim   int // 95 %
		relief int // 50 %
	}{
		"auto":  {0, 64, 1, 1, 64},
		"asked": {48, 48, 48, 1, 48},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := newWorld(t, memory.New()), &heap{share: 50}
				g := &gauge{provider: w.provider}
				w.provider.answer = g.answer
				w.settings.Concurrency, w.settings.Heap = tt.asked, h
				job := w.start("r1", callA, rows(60_000)...)
				done := make(chan run.Result, 1)
				go func() { done <- w.slice(job) }()
				for _, phase := range []struct {
					share int64
					want  int
				}{{50, tt.calm}, {75, tt.full}, {95, tt.brim}, {50, tt.relief}} {
					h.set(phase.share)
					time.Sleep(6 * time.Second)
					g.read()
					time.Sleep(time.Second)
					if got := g.read(); got != phase.want {
						t.Errorf("at %d %% of memory %d calls are under way, want %d", phase.share, got, phase.want)
					}
				}
				if h.collected == 0 {
					t.Error("rows were kept back, and nobody looked whether it was for garbage")
				}
				if res := <-done; res.Outcome != run.Done {
					t.Error(res)
				}
				if m := w.checkpoint(job).Stats.Memory; m.HeapPeak != 95 || m.Squeezed < 5 {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// Places become fewer once for each collection: what a collection has not looked at again says nothing new.
func TestM7OneLookACollection(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, h := newWorld(t, tbl), &fixedHeap{}
		g := &gauge{provider: w.provider}
		w.provider.answer = g.answer
		w.settings.Heap = h
		job := w.start("r1", callA, rows(5000)...)
		go func() { time.Sleep(2 * time.Second); g.read() }()
		if res := w.slice(job); res.Outcome != run.Done || g.read() != 48 {
			t.Errorf("%+v, %d calls under way at most, want three quarters of 64", res, g.most)
		}
	})
}

// fixedHeap is full, and no collection ever runs.
type fixedHeap struct{}

func (*fixedHeap) Use() (used, limit int64, cycle uint64) { return 75, 100, 7 }
func (*fixedHeap) Collect()                               {}

// The process's own memory is read, where it has a limit.
func TestM7TheProcessHasAHeap(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	w := newWorld(t, memory.New())
	w.provider.answer = echo
	job := w.start("r1", callA, rows(10)...)
	w.slice(job)
	if m := w.checkpoint(job).Stats.Memory; m.HeapPeak < 1<<20 || m.HeapPeak > 2<<30 || m.Squeezed != 0 {
		t.Errorf("%+v", m)
	}
}

// measuring is a gateway whose answers have bodies of ten bytes, which wait for their turn.
type measuring struct{ *provider }

func (g measuring) Execute(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for range batch {
		call.Bodies(ctx).Add(call.BodyUse{Turns: 1, Bytes: 10, Peak: 10, Waits: 1})
	}
	return g.provider.Execute(ctx, batch, deliver)
}

// The summary line of a slice, and the run's figures, say what memory admission did, and each slice its own.
func TestM8MemoryIsToldAfterwards(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = scripted("a.get", "r1", holds(time.Hour))
		job := w.start("r1", callA, rows(3)...)
		var b bytes.Buffer
		for range 2 {
			ports := w.ports()
			ports.Gateway, ports.Log = measuring{w.provider}, slog.New(slog.NewJSONHandler(&b, nil))
			res, err := job.Slice(t.Context(), ports, 0, w.settings)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(res.WakeAt))
		}
		var turns []int
		for line := range strings.Lines(b.String()) {
			var summary struct {
				Msg    string
				Memory struct{ Turns, Bytes, Peak, Waits, Refusals int }
			}
			if err := json.Unmarshal([]byte(line), &summary); err != nil || summary.Msg != "slice" {
				continue
			}
			turns = append(turns, summary.Memory.Turns)
			if m := summary.Memory; m.Bytes != 10*m.Turns || m.Peak != 10 || m.Waits != m.Turns {
				t.Errorf("%+v", m)
			}
		}
		if len(turns) != 2 || turns[0] != 3 || turns[1] != 1 {
			t.Errorf("turns in the slices: %v", turns)
		}
		if m := w.checkpoint(job).Stats.Memory.Bodies; m != (call.BodyUse{Turns: 4, Bytes: 40, Peak: 10, Waits: 4}) {
			t.Errorf("%+v", m)
		}
	})
}
