package run_test

import (
	"testing"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// The store dies at every write, from what is asked to the record. Asked for and planned again, it is there, once.
func TestX4CrashAtEveryWriteOfAnAskedExtension(t *testing.T) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.allShards(w.start("r1", keyedMap, "x", "a", "b"))
			more := w.more("uploads/1", "x", "b", "c")
			f.CrashAt(n, []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed}[n%2])
			_, err := run.AskExtend(t.Context(), w.st, "r1", "k", more)
			if err == nil {
				err = run.AskedExtend(t.Context(), w.st, "r1")
			}
			if crashed = f.Crashed(); crashed != (err != nil) {
				t.Fatalf("write %d: crashed %v, and it said %v", n, crashed, err)
			}
			f.Heal()
			w.countsAgree()
			w.askExtend("r1", "k", more)
			if got := w.allShards(w.plans("r1")); got != "x,one,at\na,a,0\nb,b,1\nc,c,3\n" || len(w.provider.log()) != 3 {
				t.Errorf("write %d: %d calls, got\n%s", n, len(w.provider.log()), got)
			}
			if r, _ := w.stands("r1"); len(r.Sealed.Parts) != 2 || r.Extension.Rows != 1 || r.Shards != 2 {
				t.Errorf("write %d: %+v in %d shards", n, r.Extension, r.Shards)
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}

// A planner is overtaken by another one at each of its operations, and then dies at each of its writes: they come to one part, and
// nobody deletes it.
func TestX2TwoPlannersOfAnExtension(t *testing.T) {
	for n, overtaken := 1, true; overtaken; n++ {
		for write, died := 1, true; died; write++ {
			overtaken, died = false, false
			onMemory(t, func(t *testing.T, tbl table.Table) {
				w, f := newFaultyWorld(t, tbl)
				w.allShards(w.start("r1", keyedMap, "x", "a", "b"))
				w.askExtend("r1", "k", w.more("uploads/1", "x", "b", "c"))
				ops := 0
				f.OnOp(func(tabletest.Event) {
					if ops++; ops == n {
						overtaken = true
						other := newWorld(t, tbl)
						other.st.Blobs = w.st.Blobs
						other.plans("r1")
						f.CrashAt(write, tabletest.NotDone)
					}
				})
				_ = run.AskedExtend(t.Context(), w.st, "r1") // it may have found that it was overtaken
				died = f.Crashed()
				f.OnOp(nil)
				f.Heal()
				if got := w.allShards(w.plans("r1")); got != "x,one,at\na,a,0\nb,b,1\nc,c,3\n" || len(w.provider.log()) != 3 {
					t.Errorf("operation %d, write %d: %d calls, got\n%s", n, write, len(w.provider.log()), got)
				}
				if r, _ := w.stands("r1"); len(r.Sealed.Parts) != 2 || r.Extension.Rows != 1 || r.Execution() != 1 {
					t.Errorf("operation %d, write %d: %+v, execution %d", n, write, r.Extension, r.Execution())
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// A planner stands still at each of its operations, and goes on when its extension was withdrawn and the next one is the run's: it
// changes nothing any more.
func TestX2APlannerThatComesBackLate(t *testing.T) {
	for n, late := 1, true; late; n++ {
		late = false
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.allShards(w.start("r1", keyedMap, "x", "a", "b"))
			w.askExtend("r1", "k", w.more("uploads/1", "x", "b", "c"))
			other := newWorld(t, tbl)
			other.st.Blobs = w.st.Blobs
			ops := 0
			f.OnOp(func(tabletest.Event) {
				r, asked := other.stands("r1")
				if ops++; ops != n || !asked.Extends(r) {
					return
				}
				late = true
				if err := run.Cancel(t.Context(), other.st, "r1"); err != nil {
					t.Fatal(err)
				}
				other.askExtend("r1", "l", other.more("uploads/2", "x", "d"))
				other.plans("r1")
			})
			_ = run.AskedExtend(t.Context(), w.st, "r1") // it may have found that it was late
			f.OnOp(nil)
			if !late {
				return
			}
			if got := w.allShards(w.plans("r1")); got != "x,one,at\na,a,0\nb,b,1\nd,d,2\n" || len(w.provider.log()) != 3 {
				t.Errorf("operation %d: %d calls, got\n%s", n, len(w.provider.log()), got)
			}
			if r, _ := w.stands("r1"); len(r.Sealed.Parts) != 2 || r.Extension.Number != 2 {
				t.Errorf("operation %d: %+v, %+v", n, r.Extension, r.Sealed.Parts)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// Who comes back late does not take away what was asked since: the run that another planner has extended was paused again.
func TestX2ALatePlannerLeavesAPauseAlone(t *testing.T) {
	for n, late := 1, true; late; n++ {
		late = false
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.allShards(w.start("r1", keyedMap, "x", "a"))
			w.askExtend("r1", "k", w.more("uploads/1", "x", "b"))
			other := newWorld(t, tbl)
			other.st.Blobs = w.st.Blobs
			ops := 0
			f.OnOp(func(tabletest.Event) {
				if r, asked := other.stands("r1"); ops == n-1 && asked.Extends(r) {
					late = true
					other.plans("r1")
					if err := run.Pause(t.Context(), other.st, "r1", "lunch"); err != nil {
						t.Fatal(err)
					}
				}
				ops++
			})
			_ = run.AskedExtend(t.Context(), w.st, "r1")
			if _, asked := w.stands("r1"); late && asked.Pause == nil {
				t.Errorf("operation %d: the pause is gone", n)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A retry that was asked for dies at each of its writes. Until it is done, whoever looks is told that the run does not rest, and
// beginning again brings it to work.
func TestX4CrashAtEveryWriteOfAnAskedRetry(t *testing.T) {
	for n := 1; ; n++ {
		crashed := true
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w, f := newFaultyWorld(t, tbl)
			w.provider.answer = func(a call.Attempt, nth int) call.Answer {
				if nth == 0 {
					return refusal422()
				}
				return echo(a, nth)
			}
			job := w.start("r1", keyedMap, "x", "a", "b")
			w.allShards(job)
			if _, err := run.AskRetry(t.Context(), w.st, "r1", run.RetryOptions{}); err != nil {
				t.Fatal(err)
			}
			f.CrashAt(n, []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed}[n%2])
			begin := func() error {
				p := w.ports()
				p.Alive = func(string) bool { return false }
				return run.AskedRetry(t.Context(), p, w.settings, "r1")
			}
			if err := begin(); f.Crashed() != (err != nil) {
				t.Fatalf("write %d: crashed %v, and it said %v", n, f.Crashed(), err)
			}
			crashed = f.Crashed()
			f.Heal()
			if r, asked := w.stands("r1"); r.Status == sheet.Paused && asked.Wanted(r) == "" {
				t.Errorf("write %d: it is said to rest", n)
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			if r, asked := w.stands("r1"); r.Status != sheet.Running || asked.Wanted(r) != "" {
				t.Errorf("write %d: %s, wanted %q", n, r.Status, asked.Wanted(r))
			}
			if got := w.allShards(w.reload(job)); got != "x,one,at\na,a,0\nb,b,1\n" || len(w.provider.log()) != 4 {
				t.Errorf("write %d: %d calls, got\n%s", n, len(w.provider.log()), got)
			}
		})
		if t.Failed() || !crashed {
			t.Logf("%d writes", n-1)
			return
		}
	}
}
