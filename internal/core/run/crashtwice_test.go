package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// A slice dies after it has saved pages that no checkpoint speaks of. Its heir reads the journal, and dies just after a
// checkpoint, long before it has come as far. The heir's heir still knows what has ended: nothing is paid for
// or counted a second time.
func TestH6WhatASecondCrashLeavesIsKnown(t *testing.T) {
	const pages = 8
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w, f := newFaultyWorld(t, tbl)
		w.provider.answer = slowEcho(10 * time.Millisecond)
		lines := rows(pages * 1000)
		job := w.start("r1", callA, lines...)
		crashAfter := func(written int, key string) {
			f.OnOp(func(e tabletest.Event) {
				if e.Op.IsWrite() && strings.HasPrefix(e.Keys[0].Part+" "+e.Keys[0].Sort, key) {
					if written--; written == 0 {
						f.CrashAt(1, tabletest.NotDone)
					}
				}
			})
		}
		ports := func() run.Ports {
			p := w.ports()
			p.Alive = func(string) bool { return false }
			return p
		}
		for _, crash := range []struct {
			written int
			key     string
		}{{6, "run/r1/out p/"}, {3, "run/r1/shard/0000 checkpoint"}} {
			crashAfter(crash.written, crash.key)
			if _, err := job.Slice(t.Context(), ports(), 0, w.settings); err == nil || !f.Crashed() {
				t.Fatalf("no crash after %v: %v", crash, err)
			}
			f.OnOp(nil)
			f.Heal()
			slowPages(f) // so that the heir comes slowly to where the other one was
			w.countsAgree()
			job = w.reload(job)
		}
		f.Heal()
		if res, err := job.Slice(t.Context(), ports(), 0, w.settings); err != nil || res.Outcome != run.Done {
			t.Fatalf("%+v, %v", res, err)
		}
		var want strings.Builder
		want.WriteString("x,one\n")
		for _, x := range lines[1:] {
			fmt.Fprintf(&want, "%s,%s\n", x, x)
		}
		if got := w.export(w.reload(job)); got != want.String() {
			t.Error("the table is wrong")
		}
		again := 0
		for _, n := range completed(w.provider) {
			again += n - 1
		}
		if most := 2 * 2 * run.AutoConcurrency; again > most {
			t.Errorf("%d calls were made again, at most %d were in flight at the crashes", again, most)
		}
	})
}

// slowPages delays the reading of sealed pages.
func slowPages(f *tabletest.Faulty) {
	f.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: 9 * time.Second, On: func(op tabletest.Op, key table.Key) bool {
		return !op.IsWrite() && strings.HasPrefix(key.Part, "run/r1/in")
	}})
}
