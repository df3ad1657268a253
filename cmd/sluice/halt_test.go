package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run waits for a provider for an hour when a second process cancels it: within two seconds its process has ended, and
// what was finished is kept.
func TestX4CancelFromAnotherProcessWhileParked(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nhold\n")
	p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1", "--json", "--concurrency", "1")
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	asked := time.Now()
	b.sluice("cancel", "r1").want(t, exitOK, "run r1 was cancelled: 1 of 2 rows done and kept. To look at them: sluice export r1 --out FILE --state @state")
	r := p.wait()
	if took := time.Since(asked); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	r.want(t, exitFailed, "run r1 was cancelled: 1 of 2 rows done")
	if got := r.json(t); got["status"] != "cancelled" || got["completed"] != 1.0 || got["waiting"] != 1.0 || got["finishedAt"] == nil {
		t.Errorf("told %v", got)
	}
	b.sluice("cancel", "r1").want(t, exitOK, "was cancelled") // again is harmless
	b.sluice("pause", "r1").want(t, exitFailed, "run r1 has ended: it is cancelled")
	b.sluice("runs", "r1").want(t, exitOK, "status    cancelled")
	b.sluice("rows", "r1", "--status", "cancelled").want(t, exitOK, "      2  cancelled  ")
	b.sluice("export", "r1").want(t, exitOK, "x,up,_status,_error\nada,ADA!,completed,\nhold,,cancelled,\n")
	b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1").wait().want(t, exitFailed, "run r1 was cancelled")
	if n := b.provider.calls("hold"); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// Calls are under way, and do not come back. They are interrupted; the run can be taken up again.
func TestX4R10CancelInterruptsCallsUnderWay(t *testing.T) {
	b := newBench(t)
	p := b.start(gated(b)...)
	eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
	asked := time.Now()
	b.sluice("cancel", "r1", "--json").want(t, exitOK, `"status":"cancelled"`, `"completed":20`, `"waiting":20`)
	p.wait().want(t, exitFailed, "run r1 was cancelled: 20 of 40 rows done")
	if took := time.Since(asked); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	b.provider.open()
	b.sluice("resume", "r1").want(t, exitOK, "40 of 40 completed", "output      @out.csv")
	same(t, b.read("out.csv"), gatedTable())
	if n := b.provider.calls(""); n != 50 { // those that were interrupted are asked again: they are idempotent
		t.Errorf("%d calls, want 40, and the 10 that were interrupted", n)
	}
	b.sluice("cancel", "r1").want(t, exitFailed, "run r1 has ended: it is completed")
	b.sluice("cancel", "none").want(t, exitUsage, `there is no run "none" in @state`)
}

// Nobody works on the run: the verb itself makes the record true.
func TestX4CancelOfARunWithoutAProcess(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nhold\n")
	p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--concurrency", "1")
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	p.signal(syscall.SIGKILL)
	p.wait()
	b.sluice("cancel", "r1").want(t, exitOK, "1 of 2 rows done and kept")
	b.sluice("runs", "r1").want(t, exitOK, "status    cancelled", "1 of 2 done")
}

// Calls under way come to their end, then nothing happens until the run is resumed, by whichever command.
func TestX4PauseAndContinue(t *testing.T) {
	for _, again := range []string{"resume", "run"} {
		t.Run(again, func(t *testing.T) {
			b := newBench(t)
			p := b.start(gated(b)...)
			eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
			pause := b.start("pause", "r1", "--reason", "no money")
			eventually(t, "another process sees it", func() bool { return strings.Contains(b.sluice("runs", "r1").out, "status    pausing") })
			eventually(t, "it says that it has heard", func() bool { return strings.Contains(p.err.String(), "20 of 40 rows (50%), pausing") })
			b.provider.open()
			pause.wait().want(t, exitOK, "run r1 is paused (no money): 30 of 40 rows done, nothing is lost. To go on: sluice resume r1 --state @state")
			p.wait().want(t, exitFailed, "run r1 is paused (no money): 30 of 40 rows done")
			b.sluice("runs", "r1").want(t, exitOK, "status    paused", "no money")
			args := []string{"resume", "r1", "--budget-calls", "100", "--budget-cost", "1.5"}
			if again == "run" {
				args = gated(b)
			}
			b.sluice(args...).want(t, exitOK, "40 of 40 completed")
			same(t, b.read("out.csv"), gatedTable())
			if n := b.provider.calls(""); n != 40 {
				t.Errorf("%d calls for 40 rows", n)
			}
		})
	}
}
