package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// served is a bench whose commands go to a server of its own.
func served(t *testing.T, flags ...string) (*bench, *server) {
	b := newBench(t)
	s := b.serve(flags...)
	b.env(map[string]string{"SLUICE_API_URL": s.url})
	b.secrets = nil // none is needed here
	return b, s
}

// The same files give the same table, the same report and the same words as without a server.
func TestARunOfAServerIsToldAsOneOfThisMachine(t *testing.T) {
	b, _ := served(t)
	b.write("in.csv", "x\nada\nada\nbad1\nbob\nada\n")
	b.write("map.yaml", strings.Replace(mapText, "name: upper", "name: upper\nkey: x", 1))
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--set", "tail=?"}
	here := newBench(t)
	here.write("in.csv", b.read("in.csv"))
	here.write("map.yaml", b.read("map.yaml"))
	want := here.sluice(append(args, "--out", "@out.csv", "--json", "--quiet")...)
	want.want(t, exitRowsFailed)

	got := b.sluice(append(args, "--out", "@out.csv", "--json", "--quiet")...)
	got.want(t, exitRowsFailed)
	same(t, b.read("out.csv"), strings.ReplaceAll(here.read("out.csv"), here.provider.URL, b.provider.URL))
	told, expected := got.json(t), want.json(t)
	for _, same := range []string{"id", "status", "total", "completed", "failed", "duplicates", "waiting", "calls", "slices", "parks", "cost", "out"} {
		if diff := cmp.Diff(expected[same], told[same]); diff != "" {
			t.Errorf("%s: %s", same, diff)
		}
	}
	for name := range expected {
		if _, ok := told[name]; !ok {
			t.Errorf("no field %s", name)
		}
	}
	// Again: the run is found as it is, and nothing is called.
	calls := b.provider.calls("")
	r := b.sluice(append(args, "--out", "@again.jsonl")...)
	r.want(t, exitRowsFailed, "run r1 is at work at ", "run r1 (upper): completed", "2 of 3 completed, 1 failed; 2 duplicates left out",
		"failed      1 × up: HTTP_422, such as: acme answered 422", "list them   sluice rows r1 --status failed\n", "output      @again.jsonl")
	if n := b.provider.calls(""); n != calls {
		t.Errorf("%d calls more", n-calls)
	}
	if text := b.read("again.jsonl"); !strings.HasPrefix(text, `{"x":"ada","up":"ADA?","_status":"completed","_error":null}`) {
		t.Errorf("%q", text)
	}
	b.write("in.csv", "x\neve\n")
	b.sluice(args...).want(t, exitUsage, `run "r1" exists, with another map, tools, variables, limit or input; choose another id`)
	b.sluice("resume", "r1", "--out", "-", "--quiet").want(t, exitRowsFailed, "ada,ADA?,completed,\n")
	b.sluice("runs", "r1", "--cost").want(t, exitOK, "run r1 (upper): completed, 3 rows", "this run was on a laptop")
	b.sluice("export", "r1").want(t, exitOK, "x,up,_status,_error\nada,ADA?,completed,\n")
}

// The input is checked before anything is sent; a mistake costs nothing, and exits as it does here.
func TestMistakesAreFoundBeforeAnythingIsSent(t *testing.T) {
	b, s := served(t)
	b.write("bad.yaml", strings.Replace(mapText, "row.x", "row.y", 1))
	b.sluice("run", "@bad.yaml", "--tools", "@tools.yaml", "--in", "@in.csv").want(t, exitUsage, "@bad.yaml:", "the input has no column `y`")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@nothing.csv").want(t, exitUsage, "there is no file @nothing.csv")
	b.sluice("run", "@map.yaml", "--in", "@in.csv").want(t, exitUsage, "acme.up")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--limit=-1").want(t, exitUsage, "it must be positive")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "a.b").want(t, exitUsage, "`run` may have letters, digits")
	b.sluice("resume", "r1", "--concurrency", "3").want(t, exitUsage, "--concurrency is chosen when a run is started")
	b.write("tools.yaml", strings.Replace(b.read("tools.yaml"), "env:ACME_KEY", "env:NOBODY_HAS_THIS", 1))
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv").want(t, exitUsage, "provider acme: ", "NOBODY_HAS_THIS")
	b.write("late.csv", "x\nada\neve,2\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@late.csv").want(t, exitUsage, "@late.csv:3")
	b.write("late.jsonl", `{"x":"ada"}`+"\n"+`{"x":12345678901234567890123}`+"\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@late.jsonl").want(t, exitUsage, "@late.jsonl:2")
	b.write("other.jsonl", `{"z":1}`+"\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@other.jsonl").want(t, exitUsage, "the input has no column `x`")
	b.sluice("runs").want(t, exitOK, "There are no runs yet.")
	if n := b.provider.calls(""); n != 0 {
		t.Errorf("%d calls", n)
	}
	s.signal(syscall.SIGTERM)
	s.wait()
	b.sluice("runs").want(t, exitFailed, "cannot reach "+s.url)
}

// From a pipe, with types, and with a delimiter that must be named.
func TestInputsOfAServer(t *testing.T) {
	b, _ := served(t)
	b.write("map.yaml", "version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\n")
	b.stdin = `{"x":1}` + "\n" + `{"x":[2]}` + "\n"
	b.sluice("run", "@map.yaml", "--in", "-", "--out", "@out.jsonl", "--quiet").want(t, exitOK)
	same(t, b.read("out.jsonl"), `{"x":1,"y":1}`+"\n"+`{"x":[2],"y":[2]}`+"\n")
	b.write("in put.csv", "x|n\nM\xfcller|1\nAda|2\n")
	b.sluice("run", "@map.yaml", "--in", "@in put.csv", "--out", "-", "--encoding", "latin1", "--delimiter", "|", "--limit", "1", "--quiet").want(t, exitOK, "x,n,y\nMüller,1,Müller\n")
	b.write("tab.tsv", "x\tn\na|b\t1\n")
	b.sluice("run", "@map.yaml", "--in", "@tab.tsv", "--out", "-", "--delimiter", "tab", "--status-columns", "--quiet").want(t, exitOK, "x,n,y,_status,_error\na|b,1,a|b,completed,\n")
}

// Ctrl-C ends the watching; the run goes on, is paused, goes on, is cancelled.
func TestARunOfAServerOutlivesItsWatcher(t *testing.T) {
	b, s := served(t)
	b.write("in.csv", "x\nada\nhold\n")
	p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--concurrency", "1", "--api", s.url)
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	if text := p.err.String(); !strings.Contains(text, "acme: 429 until ") || !strings.Contains(text, "1 of 2 rows (50%)") {
		t.Errorf("it says %q", text)
	}
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted, "run r1 goes on at "+s.url+". To watch it: sluice resume r1 --api "+s.url)

	b.sluice("runs", "r1").want(t, exitOK, "status    parked", "acme: 429 until", "(1 row waiting)", "wakes")
	b.sluice("rows", "r1", "--status", "held").wantLine(t, "      2  held       held by acme until ")
	b.sluice("pause", "r1", "--reason", "new key").want(t, exitOK, "run r1 is paused (new key): 1 of 2 rows done, nothing is lost. To go on: sluice resume r1\n")
	b.sluice("runs", "r1").want(t, exitOK, "status    paused", "new key")
	q := b.start("resume", "r1", "--api", s.url)
	eventually(t, "it is parked again", func() bool { return strings.Contains(q.err.String(), "parked until ") })
	b.sluice("cancel", "r1", "--json").want(t, exitOK, `"status":"cancelled"`)
	q.wait().want(t, exitFailed, "run r1 was cancelled: 1 of 2 rows done and kept")
	b.sluice("pause", "r1").want(t, exitFailed, "has ended: it is cancelled")
	b.sluice("cancel", "nobody").want(t, exitUsage, `there is no run "nobody" at `+s.url)
	b.sluice("rows", "r1", "--status", "cancelled").wantLine(t, "      2  cancelled")
	b.sluice("export", "r1").want(t, exitOK, "ada,ADA!,completed,", "hold,,cancelled,")
}

func (r result) wantLine(t *testing.T, part string) {
	t.Helper()
	r.want(t, exitOK, part)
	if n := strings.Count(r.out, "\n"); n != 2 { // and the heading
		t.Errorf("%d lines: %s", n, r.out)
	}
}

// The server is stopped and started while somebody watches: nothing is lost, and nothing is paid for twice.
func TestAServerThatComesBackGoesOn(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	addr := strings.TrimPrefix(s.url, "http://")
	p := b.start(append(gated(b), "--api", s.url)...)
	eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
	s.signal(syscall.SIGKILL)
	s.wait()
	eventually(t, "it says that it asks again", func() bool { return strings.Contains(p.err.String(), "the run goes on there, and is asked for again") })
	b.provider.open()
	again := b.start("serve", "--addr", addr)
	r := p.wait()
	r.want(t, exitOK, "40 of 40 completed")
	same(t, b.read("out.csv"), gatedTable())
	for i := range 20 {
		if n := b.provider.calls(fmt.Sprint("row", i)); n != 1 {
			t.Errorf("row%d was paid for %d times", i, n)
		}
	}
	again.signal(syscall.SIGTERM)
	again.wait().want(t, exitOK)
}

func TestFailedRowsOfAServerAreRunAgain(t *testing.T) {
	b, _ := served(t)
	b.write("in.csv", "x\nada\nbad1\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--quiet").want(t, exitRowsFailed)
	b.sluice("retry", "r1").want(t, exitRowsFailed, "1 of 2 completed, 1 failed")
	if ada, bad := b.provider.calls("ada"), b.provider.calls("bad1"); ada != 1 || bad != 2 {
		t.Errorf("%d and %d calls", ada, bad)
	}
	b.sluice("retry", "r1", "--unknown", "accept", "--value", "x").want(t, exitUsage, "is not JSON")
}

func TestAnswersOfAServer(t *testing.T) {
	b, _ := served(t)
	b.write("map.yaml", "version: 1\nkey: x\ncolumns:\n  - {name: ok, event: {key: \"ok-${row.x}\", expires: 1h}}\n")
	p := b.start("run", "@map.yaml", "--in", "@in.csv", "--run", "r1", "--out", "@out.csv", "--api", b.getenv("SLUICE_API_URL"))
	eventually(t, "it waits", func() bool { return strings.Contains(p.err.String(), "2 wait for answers") })
	b.sluice("answer", "ok-eve", "true").want(t, exitUsage, `no row waits for "ok-eve"`)
	b.sluice("answer", "ok-ada", "true").want(t, exitOK, "ok-ada: 1 row goes on with this answer (JSON)")
	b.sluice("answer", "ok-ada", "false").want(t, exitOK, "ok-ada was answered before, at ", "with true; that stands")
	b.sluice("answer", "ok-bob", "why not?", "--json").want(t, exitOK, `"taken":1`)
	p.wait().want(t, exitOK)
	same(t, b.read("out.csv"), "x,ok\nada,true\nbob,why not?\n")
}

// The tool file is sent, secrets are not: this process has none, and the server's are used.
func TestACallThroughAServer(t *testing.T) {
	b, _ := served(t)
	r := b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=ada", "--with", "n=3")
	r.want(t, exitOK)
	var got map[string]any
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || cmp.Diff(map[string]any{"up": "ADA", "key": "k1", "n": "3"}, got) != "" {
		t.Errorf("%s %v", r.out, err)
	}
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=bad").want(t, exitFailed, "acme.up: HTTP_422")
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=none").want(t, exitOK, "null\n")
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=hold").want(t, exitFailed, "not before ")
	if n := b.provider.calls("bad"); n != 1 {
		t.Errorf("a failed call was made %d times", n)
	}
}

func TestAServerWithAKey(t *testing.T) {
	b := newBench(t)
	const key = "0123456789abcdef"
	s := b.serve("--key", key)
	b.env(map[string]string{"SLUICE_API_URL": s.url})
	b.sluice("runs").want(t, exitFailed, "asks for a key; set SLUICE_API_KEY")
	b.env(map[string]string{"SLUICE_API_URL": s.url, "SLUICE_API_KEY": key + "x"})
	b.sluice("runs").want(t, exitFailed, "does not take the key that is in SLUICE_API_KEY")
	b.env(map[string]string{"SLUICE_API_URL": s.url, "SLUICE_API_KEY": key})
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--quiet").want(t, exitOK)
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbob,BOB!\n")
	if text := s.out.String() + s.err.String(); strings.Contains(text, key) {
		t.Errorf("the key was logged: %s", text)
	}
	if _, err := os.Stat(b.path("out.csv")); err != nil {
		t.Error(err)
	}
}
