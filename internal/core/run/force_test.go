package run_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

func (w *world) request(id, mapText string, lines ...string) run.Request {
	return run.Request{
		ID:        id,
		Documents: sheet.Documents{MapFile: "map.yaml", Map: []byte(mapText), ToolsFile: "tools.yaml", Tools: []byte(tools)},
		InputName: "in.csv",
		Input:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil },
		Format:    intake.Options{Format: "csv"},
	}
}

// forced plans a run that ignores what earlier runs have paid for.
func (w *world) forced(id, mapText string, lines ...string) *run.Job {
	w.t.Helper()
	req := w.request(id, mapText, lines...)
	req.Force = true
	job, err := run.Start(w.t.Context(), w.st, req)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// versioned answers with a text that says how often it was asked.
func versioned(_ call.Attempt, nth int) call.Answer {
	return ok(map[string]any{"x": fmt.Sprint("v", nth)})
}

// Force pays again for what earlier runs have, once; later runs that do not force take the new result.
func TestR9ForceIgnoresEarlierRuns(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = versioned
		for i, step := range []struct {
			force bool
			want  string
			calls int
		}{{false, "v0", 1}, {false, "v0", 1}, {true, "v1", 2}, {false, "v1", 2}, {true, "v2", 3}} {
			start := w.start
			if step.force {
				start = w.forced
			}
			got := w.finish(start(fmt.Sprint("run", i), cachedCall, same(3)...))
			if want := "x,one\n" + strings.Repeat("v,"+step.want+"\n", 3); got != want || len(w.provider.log()) != step.calls {
				t.Errorf("run %d: %d calls, got %q, want %d and %q", i, len(w.provider.log()), got, step.calls, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// Two shards of a forced run ask the same, side by side: the run pays once.
func TestR9ForceOfAnotherShardIsTheSameRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(2 * time.Second)
			return versioned(a, nth)
		}
		w.finish(w.start("earlier", cachedCall, same(1)...))
		time.Sleep(time.Second)
		job := w.inShards(w.forced("r", cachedCall, same(1500)...), 2)
		var wg sync.WaitGroup
		for shard := range 2 {
			p := w.ports()
			wg.Go(func() {
				for {
					res, err := job.Slice(t.Context(), p, shard, w.settings)
					if err != nil || res.Outcome == run.Done {
						if err != nil {
							t.Error(err)
						}
						return
					}
					time.Sleep(time.Until(res.WakeAt))
				}
			})
		}
		wg.Wait()
		if got := w.export(w.reload(job)); strings.Count(got, "v,v1\n") != 1500 || len(w.provider.log()) != 2 {
			t.Errorf("%d calls, %d rows with the new result", len(w.provider.log()), strings.Count(got, "v,v1\n"))
		}
	})
}

// inShards divides a run that has just been planned.
func (w *world) inShards(job *run.Job, n int) *run.Job {
	w.t.Helper()
	rec, err := sheet.Load(w.t.Context(), w.st, job.Run.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	rec.Shards = n
	if err := sheet.Save(w.t.Context(), w.st, rec); err != nil {
		w.t.Fatal(err)
	}
	return w.reload(job)
}

// The process dies at every write of a forced run. Once the receipt is durable, the run never pays again.
func TestR9ForceSurvivesACrash(t *testing.T) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.provider.answer = versioned
			w.finish(w.start("earlier", cachedCall, same(1)...))
			time.Sleep(time.Second)
			job := w.forced("r1", cachedCall, same(3)...)
			claimed, paid := false, false
			f.OnOp(func(e tabletest.Event) {
				if e.Op == tabletest.OpPut && isReceipt(e.Keys[0]) && e.Err == nil {
					claimed, paid = true, claimed
				}
			})
			f.CrashAt(n, tabletest.NotDone)
			_, err := job.Slice(t.Context(), w.ports(), 0, w.settings)
			if crashed = f.Crashed(); crashed && err == nil {
				t.Fatalf("write %d was lost and nobody said so", n)
			}
			f.Heal()
			f.OnOp(nil)
			job = w.reload(job)
			if crashed {
				ports := w.ports()
				ports.Alive = func(string) bool { return false }
				if res, err := job.Slice(t.Context(), ports, 0, w.settings); err != nil || res.Outcome != run.Done {
					t.Fatal(res, err)
				}
			}
			got, calls := w.export(w.reload(job)), len(w.provider.log())-1
			if calls != 1 && (paid || calls > 2) {
				t.Errorf("crash at write %d: the run paid %d times, its receipt was durable: %v", n, calls, paid)
			}
			if want := "x,one\n" + strings.Repeat(fmt.Sprintf("v,v%d\n", calls), 3); got != want {
				t.Errorf("crash at write %d: got %q, want %q", n, got, want)
			}
		})
		if t.Failed() || !crashed {
			return
		}
	}
}

// A forced call that comes to nothing does not take away what an earlier run has paid for.
func TestR9FailedForceKeepsTheEarlierResult(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		refuses := false
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if refuses {
				return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
			}
			return versioned(a, nth)
		}
		w.finish(w.start("r1", cachedCall, same(1)...))
		time.Sleep(time.Second)
		refuses = true
		if got := w.finish(w.forced("r2", cachedCall, same(1)...)); !strings.Contains(got, "HTTP_422") {
			t.Errorf("got %q", got)
		}
		time.Sleep(time.Second)
		if got := w.finish(w.start("r3", cachedCall, same(1)...)); got != "x,one\nv,v0\n" || len(w.provider.log()) != 2 {
			t.Errorf("%d calls, got %q", len(w.provider.log()), got)
		}
	})
}

// While a forced call is under way, other runs take the earlier result and do not wait for the new one.
func TestR9ForceKeepsNobodyWaiting(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = versioned
		w.finish(w.start("r1", cachedCall, same(1)...))
		time.Sleep(time.Second)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			time.Sleep(10 * time.Second)
			return versioned(a, nth)
		}
		job, ports := w.forced("r2", cachedCall, same(1)...), w.ports()
		var wg sync.WaitGroup
		wg.Go(func() {
			if res, err := job.Slice(t.Context(), ports, 0, w.settings); err != nil || res.Outcome != run.Done {
				t.Error(res, err)
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		if got := w.finish(w.start("r3", cachedCall, same(1)...)); got != "x,one\nv,v0\n" || time.Since(began) > 100*time.Millisecond {
			t.Errorf("after %v: %q", time.Since(began), got)
		}
		wg.Wait()
		if got := w.finish(w.start("r4", cachedCall, same(1)...)); got != "x,one\nv,v1\n" {
			t.Errorf("got %q", got)
		}
	})
}

// A result that is too large to be kept for other runs is this run's all the same, and is not paid for again.
func TestResultsTooLargeForTheCacheAreNotPaidForAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		noise := make([]byte, 0, 600_000)
		for x := uint32(1); len(noise) < 600_000; {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			noise = append(noise, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x%64])
		}
		w.provider.answer = func(call.Attempt, int) call.Answer { return ok(map[string]any{"x": string(noise)}) }
		for i := 1; i <= 2; i++ {
			if got := w.finish(w.start(fmt.Sprint("r", i), cachedCall, same(2)...)); strings.Count(got, string(noise)) != 2 || len(w.provider.log()) != i {
				t.Errorf("run %d: %d calls, %d bytes", i, len(w.provider.log()), len(got))
			}
		}
	})
}
