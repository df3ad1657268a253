package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const finishText = mapText + `finish:
  - {call: acme.up, with: {x: "LAST"}, result: "${result.up}"}
  - {call: other.up, with: {x: "bad-${run.completed}"}}
  - publish: {name: report.txt, public: false, content: "${run.name}: ${run.completed} of ${run.total}\n"}
`

func (b *bench) finishRun(last string) []string {
	b.t.Helper()
	b.write("map.yaml", strings.Replace(finishText, "LAST", last, 1))
	return []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1"}
}

// The steps are made when the table is there; what became of them is told, and a step that failed is no failure of the run.
func TestFinishIsMadeAfterTheTableAndTold(t *testing.T) {
	b := newBench(t)
	p := b.start(b.finishRun("wait-${run.completed}")...)
	eventually(t, "the first step is at work", func() bool { return b.provider.calls("wait-2") == 1 })
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbob,BOB!\n")
	b.sluice("runs", "r1").want(t, exitOK, "status    running", "2 of 2 done")
	b.sluice("export", "r1", "--out", "@other.csv").want(t, exitOK)
	same(t, b.read("other.csv"), b.read("out.csv"))
	if err := os.Remove(b.path("out.csv")); err != nil {
		t.Fatal(err)
	}
	b.provider.open()
	r := p.wait()
	r.want(t, exitOK, "run r1 (upper): completed", `finish      acme.up called: "WAIT-2"`, "other.up failed: HTTP_422: other answered 422",
		"report.txt published (14 bytes): @state/published/r1/report.txt", "4: 4 dispatched")
	same(t, b.read("state/published/r1/report.txt"), "upper: 2 of 2\n")
	if _, err := os.Stat(b.path("out.csv")); err == nil {
		t.Error("the table was written a second time")
	}
	b.sluice("runs", "r1").want(t, exitOK, `finish    acme.up called: "WAIT-2"`, "finish    report.txt published", "status    completed")
	if b.provider.calls("wait-2") != 1 || b.provider.calls("bad-2") != 1 {
		t.Error("a step was made again")
	}
}

func TestFinishInJSON(t *testing.T) {
	b := newBench(t)
	r := b.sluice(append(b.finishRun("ok"), "--json", "--quiet")...)
	r.want(t, exitOK, "run r1: finish step 2 (other.up): HTTP_422: other answered 422")
	got := r.json(t)
	steps, _ := got["finish"].([]any)
	warnings, _ := got["warnings"].([]any)
	if len(steps) != 3 || len(warnings) != 1 || !strings.HasPrefix(warnings[0].(string), "finish step 2 (other.up): HTTP_422: ") {
		t.Fatalf("%v, %v", steps, warnings)
	}
	if d := cmp.Diff(map[string]any{"call": "acme.up", "result": "OK"}, steps[0]); d != "" {
		t.Error(d)
	}
	report := steps[2].(map[string]any)
	report["at"] = b.plain(report["at"].(string))
	if d := cmp.Diff(map[string]any{"publish": "report.txt", "size": 14.0, "at": "@state/published/r1/report.txt"}, report); d != "" {
		t.Error(d)
	}
}

// The call at the end is put off for an hour: the run is parked, its table is there, and a later process waits on.
func TestH9FinishIsParkedAndResumed(t *testing.T) {
	b := newBench(t)
	p := b.start(b.finishRun("hold")...)
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "finishing: parked until ") })
	if text := p.err.String(); !strings.Contains(text, "2 of 2 rows (100%)") || !strings.Contains(text, "; acme: 429 until ") {
		t.Errorf("it says %q", text)
	}
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbob,BOB!\n")
	held := b.sluice("runs", "r1")
	held.want(t, exitOK, "status    parked", "acme: 429 until", "wakes")
	if strings.Contains(held.out, "row waiting") {
		t.Errorf("a step is no row: %s", held.out)
	}
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted, "run r1 is parked: 2 of 2 rows done", "sluice resume r1", "its next step of finish is due at ")

	p = b.start("resume", "r1")
	eventually(t, "it waits on", func() bool { return strings.Contains(p.err.String(), "finishing: parked until ") })
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted)
	if n := b.provider.calls("hold"); n != 1 {
		t.Errorf("asked %d times before its hour was over", n)
	}
	if _, err := os.Stat(b.path("state/published")); err == nil {
		t.Error("a later step was made")
	}
}

// What cannot be true is not told: while the table cannot be written, no step is made.
func TestFinishIsNotMadeWithoutTheTable(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nwait\n")
	p := b.start(b.finishRun("ok")...)
	eventually(t, "a row is at work", func() bool { return b.provider.calls("wait") == 1 })
	if err := os.MkdirAll(b.path("out.csv/in-the-way"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.provider.open()
	p.wait().want(t, exitFailed, "run r1: every row has ended, but its table could not be written", "sluice resume r1 --state @state --out FILE")
	if n := b.provider.calls("ok"); n != 0 {
		t.Errorf("a step was made %d times", n)
	}
	b.sluice("resume", "r1", "--out", "@other.csv").want(t, exitOK, "run r1 (upper): completed", "acme.up called")
	same(t, b.read("other.csv"), "x,up\nada,ADA!\nwait,WAIT!\n")
}

// Secrets of tools that only the end needs are looked for before anything begins.
func TestFinishNeedsItsSecretsAtTheStart(t *testing.T) {
	b := newBench(t)
	delete(b.secrets, "OTHER_KEY")
	b.sluice(b.finishRun("ok")...).want(t, exitUsage, "provider other: the environment variable OTHER_KEY is not set")
	if n := b.provider.calls(""); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestFinishOfADeployment(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"run":"r1","name":"m","status":"completed","warnings":["finish step 1 (a.b): HTTP_500: no"],"finish":[
			{"call":"a.b","error":{"code":"HTTP_500","message":"no"}},
			{"publish":"a.txt","size":2,"link":{"method":"GET","url":"https://bucket/a.txt?x=1","expiresAt":"2026-11-30T10:00:00Z"}},
			{"publish":"b.txt","size":1,"link":{"method":"GET","url":"links/b.txt","expiresAt":"2026-11-30T10:00:00Z"}}]}`)
	}))
	defer server.Close()
	b.env(map[string]string{})
	r := b.sluice("runs", "r1", "--api", server.URL+"/v1")
	r.want(t, exitOK, "finish    a.b failed: HTTP_500: no", "a.txt published (2 bytes): https://bucket/a.txt?x=1", "b.txt published (1 byte): "+server.URL+"/v1/links/b.txt")
	if got := b.sluice("runs", "r1", "--api", server.URL+"/v1", "--json").json(t); len(got["warnings"].([]any)) != 1 || len(got["finish"].([]any)) != 3 {
		t.Errorf("%v", got)
	}
}
