package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const askingMap = `version: 1
name: asking
columns:
  - {name: ok, event: {key: "go-${row.x}", expires: 24h, onTimeout: park}, result: "${result}"}
  - {name: up, call: acme.up, with: {x: "${row.x}"}, result: "${result.up}"}
`

// The run waits in one process; others look at what it waits for, and answer.
func TestAnswerFromAnotherProcess(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", askingMap)
	var out, progress syncBuffer
	done := make(chan result)
	go func() {
		done <- b.into(&out, &progress, "run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--out", "@out.csv")
	}()
	eventually(t, "the run is parked", func() bool { return strings.Contains(progress.String(), "parked until an answer comes") })
	if !strings.Contains(progress.String(), "2 wait for answers") {
		t.Errorf("the progress says %q", progress.String())
	}
	b.sluice("rows", "r1", "--status", "waiting").want(t, exitOK, `1  waiting    ok: waits for the answer to "go-ada" until 20`, `"go-bob"`)
	b.sluice("rows", "r1", "--status", "waiting", "--json").want(t, exitOK, `"waits":{"column":"ok","key":"go-ada","until":"20`, `"open":true}`)
	b.sluice("runs", "r1").want(t, exitOK, "waits     2 rows wait for answers")
	b.sluice("answer", "go-eve", "true").want(t, exitUsage, `nobody waits for this answer: no row waits for "go-eve"`)
	b.sluice("answer", "go-ada", "true", "--run", "r2").want(t, exitUsage, `no row in run r2 waits for "go-ada"`)
	same(t, b.sluice("answer", "go-ada", `{"by": "Eve"}`).out, "go-ada: 1 row goes on with this answer (JSON)\n")
	same(t, b.sluice("answer", "go-bob", "yes, please").out, "go-bob: 1 row goes on with this answer (text)\n")
	r := <-done
	r.want(t, exitOK)
	same(t, b.read("out.csv"), "x,ok,up\nada,\"{\"\"by\"\":\"\"Eve\"\"}\",ADA\nbob,\"yes, please\",BOB\n")
	b.sluice("answer", "go-ada", "false").want(t, exitOK, `go-ada was answered before, at `, `with {"by":"Eve"}; that stands`)
	b.sluice("answer", "go-ada", "false", "--json").want(t, exitOK, `{"key":"go-ada","taken":0,"already":1,"at":"20`)
}

// Nobody works on the run when the answer comes: that is said, and resume takes it.
func TestAnswerWhileNobodyWorksOnTheRun(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", askingMap)
	b.write("in.csv", "x\nada\n")
	var out, progress syncBuffer
	done := make(chan result)
	go func() {
		done <- b.into(&out, &progress, "run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1")
	}()
	eventually(t, "the run is parked", func() bool { return strings.Contains(progress.String(), "parked until an answer comes") })
	b.signals <- syscall.SIGINT
	r := <-done
	r.want(t, exitInterrupted, "run r1 is parked: 0 of 1 rows done, nothing is lost. To go on: sluice resume r1")
	b.sluice("answer", "go-ada", "1").want(t, exitOK, "go-ada: 1 row goes on", "nobody works on run r1 now; to go on: sluice resume r1 --state")
	b.sluice("resume", "r1", "--out", "@out.csv").want(t, exitOK)
	same(t, b.read("out.csv"), "x,ok,up\nada,1,ADA\n")
}

func TestAnswerOfAKeyThatCouldCommandATerminal(t *testing.T) {
	b := newBench(t)
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv").want(t, exitOK)
	r := b.sluice("answer", "\x1b[2Jkey", "1")
	r.want(t, exitUsage, "nobody waits")
	if strings.Contains(r.err, "\x1b") {
		t.Errorf("%q", r.err)
	}
	b.sluice("answer", "", "1").want(t, exitUsage, "the key must be text that is not empty")
	b.sluice("answer", "k", "1", "--state", b.path("nothing")).want(t, exitUsage, "there is no state in")
	if _, err := os.Stat(b.path("nothing")); err == nil {
		t.Error("a state folder was made")
	}
}

func TestTextOfWaits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	s := standing{Total: 10, Answers: 1, Asleep: 2, Parked: true}
	same(t, s.counts(), "0 of 10 rows (0%), 1 waits for an answer, 2 sleep")
	same(t, s.state("parked until "+clock(now, now)), "parked until an answer comes")
	s.ParkedUntil = now
	same(t, s.state("parked until "+clock(now, now)), "parked until 12:00:00")
}
