package main

import (
	"strings"
	"syscall"
	"testing"
)

// The provider's fault is mended: the failed row is run again, no other is, and the output is whole.
func TestX4Retry(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nbad\nbob\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1").want(t, exitRowsFailed, "2 of 3 completed")
	b.sluice("retry", "r1").want(t, exitRowsFailed, "1 failed row is run again", "2 of 3 completed, 1 failed")
	b.provider.mend("bad")
	b.sluice("retry", "r1").want(t, exitOK, "1 failed row is run again", "3 of 3 completed", "output      @out.csv")
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbad,BAD!\nbob,BOB!\n")
	if n := b.provider.calls(""); n != 5 {
		t.Errorf("%d calls, want 3 and the failed one twice again", n)
	}
	b.sluice("retry", "r1").want(t, exitOK, "no failed row is run again", "3 of 3 completed")
	b.sluice("retry", "none").want(t, exitUsage, `there is no run "none"`)
	b.sluice("retry", "r1", "--value", "1").want(t, exitUsage, "--value is for --unknown accept")
	b.sluice("retry", "r1", "--unknown", "accept", "--value", "yes").want(t, exitUsage, "--value yes is not JSON; a text needs quotes")
}

// A run whose map ends it with the first failed row goes on when that is retried.
func TestX4RetryOfAFailFastRun(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", strings.Replace(mapText, "columns:", "onRowError: fail\nconcurrency: 1\ncolumns:", 1))
	b.write("in.csv", "x\nada\nbad\nbob\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1").want(t, exitFailed, "run r1 failed: row 2")
	b.provider.mend("bad")
	b.sluice("retry", "r1", "--out", "@out.csv").want(t, exitOK, "1 failed row is run again", "3 of 3 completed")
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbad,BAD!\nbob,BOB!\n")
}

const postText = `version: 1
name: posting
columns:
  - {name: sent, call: acme.post, with: {x: "${row.x}"}, result: "${result.up}"}
`

// A process is killed while a call is under way that must not be repeated. What to do is for a person to say.
func TestX4RetryOfUnknownOutcomes(t *testing.T) {
	for how, want := range map[string]string{"repeat": "x,sent\nada,ADA\nwait,WAIT\n", "accept": "x,sent\nada,ADA\nwait,seen\n"} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			b.write("tools.yaml", b.read("tools.yaml")+"  acme.post: {method: POST, path: \"/up/{x}\", input: {x: string}}\n")
			b.write("map.yaml", postText)
			b.write("in.csv", "x\nada\nwait\n")
			p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--concurrency", "1")
			eventually(t, "the second call is under way", func() bool { return b.provider.calls("wait") == 1 })
			p.signal(syscall.SIGKILL)
			p.wait()
			b.provider.open()
			b.sluice("resume", "r1").want(t, exitRowsFailed, "OUTCOME_UNKNOWN")
			b.sluice("retry", "r1").want(t, exitRowsFailed, "no failed row is run again", "1 failed row stays as before",
				"sluice retry r1 --state @state --unknown repeat", "1 of 2 completed, 1 failed")
			b.sluice("rows", "r1", "--status", "failed").want(t, exitOK, "OUTCOME_UNKNOWN")
			args := []string{"retry", "r1", "--unknown", how, "--out", "@out.csv"}
			if how == "accept" {
				args = append(args, "--value", `"seen"`)
			}
			b.sluice(args...).want(t, exitOK, "1 failed row is run again")
			same(t, b.read("out.csv"), want)
			if n, most := b.provider.calls("wait"), map[string]int{"repeat": 2, "accept": 1}[how]; n != most {
				t.Errorf("called %d times", n)
			}
		})
	}
}

// A run is parked, with nobody at work on it: its failed rows are run again, its held ones wait.
func TestX4RetryOfAParkedRun(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nbad\nhold\n")
	p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--concurrency", "1")
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	b.sluice("retry", "r1").want(t, exitFailed, "another process is working on it")
	p.signal(syscall.SIGINT)
	p.wait()
	b.provider.mend("bad")
	p = b.start("retry", "r1")
	eventually(t, "it is parked again", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	b.sluice("rows", "r1", "--status", "held").want(t, exitOK, `1  held       held by acme`, `2  held       held by acme`) // the provider holds both
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted, "0 of 2 rows done")
	if n := b.provider.calls("hold"); n != 1 {
		t.Errorf("asked for the held row %d times", n)
	}
}
