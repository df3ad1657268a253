package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

const twoEvents = `
version: 1
name: two
columns:
  - {name: one, call: a.get, with: {x: "${row.x}"}, result: "${result.x}"}
  - {name: ok, event: {key: "${row.x}", expires: 72h, notify: {call: a.post, with: {x: "${row.x}"}}}}
  - {name: two, call: b.get, with: {x: "${cells.ok}"}, result: "${result.x}"}
  - {name: nap, sleep: 10s}
  - {name: last, event: {key: "last ${row.x}", expires: 72h}}
output: {x: "${row.x}", two: "${cells.two}", last: "${cells.last}"}
`

const twoEventsTable = "x,two,last\nr0,yes,end\nr1,yes,end\n"

// inThreeSeconds makes calls that take a while, so that things happen meanwhile.
func inThreeSeconds(a call.Attempt, nth int) call.Answer {
	time.Sleep(3 * time.Second)
	return echo(a, nth)
}

// persist gives an answer, as often as it takes: as one does who is told that nobody waits yet, or that it went wrong.
func persist(t *testing.T, st *store.Store, key, v string) {
	for {
		_, err := run.Answer(t.Context(), st, key, json.RawMessage(v), run.Whose{})
		if err == nil {
			return
		}
		if !errors.Is(err, run.ErrNobodyWaits) && !errors.Is(err, tabletest.ErrCrashed) && !errors.Is(err, tabletest.ErrInjected) {
			t.Errorf("answer %s: %v", key, err)
			return
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-t.Context().Done():
			return
		}
	}
}

// An answer comes at every moment there is: right behind each single operation of the store while slices are at work,
// before somebody waits for it, while somebody is told, before and after the row leaves, while the slice parks, and after
// the park. The row goes on with it within the time that a look takes (E3).
func TestE3AnswerAtEveryMoment(t *testing.T) {
	for n := 1; ; n++ {
		more := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.provider.answer = inThreeSeconds
			outside := &store.Store{Table: tbl, Blobs: w.st.Blobs}
			w.outside = outside
			var ops, at atomic.Int64
			job := w.start("r1", twoEvents, "x", "r0", "r1")
			f.OnOp(func(tabletest.Event) {
				if ops.Add(1) == int64(n) {
					at.Store(int64(time.Since(w.provider.started)))
					_, err := run.Answer(t.Context(), outside, "r0", json.RawMessage(`"yes"`), run.Whose{})
					if err != nil {
						go persist(t, outside, "r0", `"yes"`)
					}
				}
			})
			time.AfterFunc(20*time.Second, func() { persist(t, outside, "r1", `"yes"`) })
			time.AfterFunc(time.Minute, func() { // nothing more happens before the answer
				if more = at.Load() != 0; !more {
					persist(t, outside, "r0", `"yes"`)
				}
			})
			go persist(t, outside, "last r0", `"end"`)
			go persist(t, outside, "last r1", `"end"`)
			began := time.Now()
			if got := w.drive(job); got != twoEventsTable {
				t.Errorf("answer behind operation %d: got %q", n, got)
			}
			// The last answer of the first event, 3 s for the call, 10 s of sleep, and a second for each time that somebody looks.
			if took, most := time.Since(began), max(time.Duration(at.Load()), 20*time.Second)+3*time.Second+10*time.Second+5*time.Second; more && took > most {
				t.Errorf("answer behind operation %d: it took %v, at most %v", n, took, most)
			}
		})
		if t.Failed() || !more {
			t.Logf("%d operations", n-1)
			return
		}
	}
}

// The process dies at every write there is, and answers come while it works and after. Nothing is lost, nobody is told
// twice but by a call that was in flight, and no wake is missed: the run never waits for the end of an event.
func TestE3CrashAtEveryWrite(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for _, after := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("kind=%d/answer after %v", kind, after), func(t *testing.T) { crashWithEvents(t, kind, after) })
		}
	}
}

func crashWithEvents(t *testing.T, kind tabletest.Kind, after time.Duration) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			f := tabletest.NewFaulty(tbl)
			f.CrashAt(n, kind)
			w := newWorld(t, f)
			w.provider.answer = echo
			outside := &store.Store{Table: tbl, Blobs: w.st.Blobs}
			w.outside = outside
			time.AfterFunc(after, func() {
				for _, x := range []string{"r0", "r1"} {
					go persist(t, outside, x, `"yes"`)
					go persist(t, outside, "last "+x, `"end"`)
				}
			})
			began := time.Now()
			got, err := w.toTheEnd(twoEvents, []string{"x", "r0", "r1"})
			crashed = f.Crashed()
			if crashed && err == nil {
				t.Fatalf("write %d was lost and nobody said so", n)
			}
			f.Heal()
			if err != nil {
				w.countsAgree()
				got, err = w.toTheEnd(twoEvents, []string{"x", "r0", "r1"})
			}
			if err != nil || got != twoEventsTable {
				t.Fatalf("crash at write %d: %v, got %q", n, err, got)
			}
			if took := time.Since(began); took > 5*time.Minute {
				t.Errorf("crash at write %d: it took %v, a wake was lost", n, took)
			}
			for _, a := range w.provider.log() {
				if times := w.provider.calls(a.tool, a.input); times > 2 {
					t.Errorf("crash at write %d: %s %s was asked %d times", n, a.tool, a.input, times)
				}
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}

// Whoever answers dies at each of its writes, which is lost, or done and reported as lost. It answers again, with
// something else: the first one that was written counts, and the row goes on.
func TestE3AnswererDiesAtEveryWrite(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for n := 1; ; n++ {
			crashed := true
			onMemory(t, func(t *testing.T, tbl table.Table) {
				w := newWorld(t, tbl)
				w.provider.answer = echo
				job := w.start("r1", twoEvents, "x", "r0")
				w.awaiting(job)
				f := tabletest.NewFaulty(tbl)
				outside := &store.Store{Table: f, Blobs: w.st.Blobs}
				f.CrashAt(n, kind)
				_, err := run.Answer(t.Context(), outside, "r0", json.RawMessage(`"yes"`), run.Whose{})
				crashed = f.Crashed()
				if crashed != (err != nil) {
					t.Fatalf("crashed: %v, and the answer: %v", crashed, err)
				}
				f.Heal()
				again, err := run.Answer(t.Context(), outside, "r0", json.RawMessage(`"again"`), run.Whose{})
				if err != nil || again.Taken+again.Already != 1 {
					t.Fatalf("again: %+v, %v", again, err)
				}
				go persist(t, outside, "last r0", `"end"`)
				began := time.Now()
				want := strings.Trim(string(again.Value), `"`)
				if again.Taken == 1 {
					want = "again"
				}
				if got := w.drive(job); got != fmt.Sprintf("x,two,last\nr0,%s,end\n", want) || time.Since(began) > 3*time.Minute {
					t.Errorf("write %d: got %q after %v", n, got, time.Since(began))
				}
			})
			if t.Failed() || !crashed {
				t.Logf("%d writes", n-1)
				break
			}
		}
	}
}
