package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the built command.
var program string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "sluice")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v0.0.0-test", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is the program at work.
type process struct {
	b        *bench
	cmd      *exec.Cmd
	out, err *syncBuffer
	done     chan struct{}
}

func (b *bench) start(args ...string) *process {
	b.t.Helper()
	return b.launch(b.command(args))
}

// startFed starts the program with a pipe to its standard input.
func (b *bench) startFed(args ...string) (*process, io.WriteCloser) {
	b.t.Helper()
	p := b.command(args)
	feed, err := p.cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.launch(p), feed
}

func (b *bench) command(args []string) *process {
	p := &process{b: b, cmd: exec.Command(program, b.args(args)...), out: &syncBuffer{}, err: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.Env = append(os.Environ(), "ACME_KEY=k1", "OTHER_KEY=k2")
	return p
}

func (b *bench) launch(p *process) *process {
	b.t.Helper()
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	b.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

func (p *process) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.b.t.Error(err)
	}
}

// wait returns what the process came to.
func (p *process) wait() result {
	p.b.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.b.t.Fatalf("the process does not end; it said:\n%s%s", p.out, p.err)
	}
	return result{p.cmd.ProcessState.ExitCode(), p.b.plain(p.out.String()), p.b.plain(p.err.String())}
}

// gatedNames are the inputs of gated.
func gatedNames() (names []string) {
	for i := range 40 {
		switch {
		case i < 20:
			names = append(names, fmt.Sprint("row", i))
		case i < 30:
			names = append(names, fmt.Sprint("wait", i))
		default:
			names = append(names, fmt.Sprint("late", i))
		}
	}
	return names
}

// gated is a run of 40 rows: 20 are done at once, the next 10 wait at the gate, where they take all places, and 10
// are not admitted before it opens.
func gated(b *bench) []string {
	b.write("in.csv", "x\n"+strings.Join(gatedNames(), "\n")+"\n")
	return []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1", "--concurrency", "10"}
}

// gatedTable is the table of gated.
func gatedTable() string {
	var out strings.Builder
	out.WriteString("x,up\n")
	for _, name := range gatedNames() {
		out.WriteString(name + "," + strings.ToUpper(name) + "!\n")
	}
	return out.String()
}

// completedRows counts the rows that a second process sees as completed.
func completedRows(b *bench) int {
	r := b.start("rows", "r1", "--status", "completed", "--json").wait()
	if r.code != exitOK {
		return 0
	}
	return strings.Count(r.out, "\n")
}

func TestInterruptParksAndResumeFinishes(t *testing.T) {
	b := newBench(t)
	p := b.start(gated(b)...)
	eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
	eventually(t, "another process sees 20 rows", func() bool { return completedRows(b) == 20 })

	second := b.start("runs", "r1", "--json").wait().json(t)
	if second["status"] != "running" || second["atWork"] != true {
		t.Errorf("a second process sees %v", second)
	}
	busy := b.start("resume", "r1").wait()
	busy.want(t, exitFailed, "run r1: another process is working on it; `sluice runs r1` shows how far it is")

	b.start(gated(b)...).wait().want(t, exitFailed, "run r1: another process is working on it")

	p.signal(syscall.SIGINT)
	eventually(t, "it says that it parks", func() bool { return strings.Contains(p.err.String(), "parking:") })
	b.provider.open() // calls under way are brought to their end
	r := p.wait()
	r.want(t, exitInterrupted, "run r1 is parked: 30 of 40 rows done, nothing is lost. To go on: sluice resume r1 --state @state")
	if _, err := os.Stat(b.path("out.csv")); err == nil {
		t.Error("a parked run wrote its table")
	}
	b.start("resume", "r1").wait().want(t, exitOK, "40 of 40 completed", "output      @out.csv")
	same(t, b.read("out.csv"), gatedTable())
	if n := b.provider.calls(""); n != 40 {
		t.Errorf("%d calls for 40 rows", n)
	}
}

func TestASecondInterruptStopsAtOnce(t *testing.T) {
	b := newBench(t)
	p := b.start(gated(b)...)
	eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
	p.signal(syscall.SIGINT)
	eventually(t, "it says that it parks", func() bool { return strings.Contains(p.err.String(), "parking:") })
	eventually(t, "it ends, though calls are under way", func() bool {
		select {
		case <-p.done:
			return true
		default:
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			return false
		}
	})
	p.wait().want(t, exitInterrupted)
	b.provider.open()
	b.start("resume", "r1").wait().want(t, exitOK, "40 of 40 completed")
	same(t, b.read("out.csv"), gatedTable())
}

func TestKilledRunIsResumedAtOnce(t *testing.T) {
	b := newBench(t)
	p := b.start(gated(b)...)
	eventually(t, "the calls of the last rows are under way", func() bool { return b.provider.calls("") == 30 })
	eventually(t, "another process sees 20 rows", func() bool { return completedRows(b) == 20 })
	p.signal(syscall.SIGKILL)
	p.wait()
	b.start("runs").wait().want(t, exitOK, "interrupted")
	b.provider.open()

	began := time.Now()
	b.start("resume", "r1").wait().want(t, exitOK, "40 of 40 completed")
	if took := time.Since(began); took > 20*time.Second { // the dead owner's lease has 60 s to go
		t.Errorf("it waited for the dead owner: %v", took)
	}
	same(t, b.read("out.csv"), gatedTable())
	for i := range 20 {
		if n := b.provider.calls(fmt.Sprint("row", i)); n != 1 {
			t.Errorf("row%d was paid for %d times", i, n)
		}
	}
}

// A run that was killed while its input was read is started again, and reads it again.
func TestKilledWhileReadingStartsAgain(t *testing.T) {
	b := newBench(t)
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "-", "--out", "@out.csv", "--run", "r1"}
	p, feed := b.startFed(args...)
	go func() { _, _ = io.WriteString(feed, "x\n"+strings.Repeat("ada\n", 50_000)) }() // more than is read ahead
	eventually(t, "the run is there", func() bool { return strings.Contains(b.start("runs").wait().out, "r1") })
	b.start("rows", "r1").wait().want(t, exitOK, "The run's input is still being read.")
	p.signal(syscall.SIGKILL)
	p.wait()
	b.start("resume", "r1").wait().want(t, exitUsage, "its input was not read to the end; start it again")

	p, feed = b.startFed(args...)
	if _, err := feed.Write([]byte("x\nbob\n")); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	p.wait().want(t, exitOK, "1 of 1 completed")
	same(t, b.read("out.csv"), "x,up\nbob,BOB!\n")
}

// A run that waits for a provider parks at once when it is interrupted, and others see until when it is held.
func TestInterruptDuringAWaitParksAtOnce(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nhold\n")
	p := b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--json",
		"--concurrency", "1") // ada is answered before the provider is met that says to wait
	eventually(t, "it says until when it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	if text := p.err.String(); !strings.Contains(text, "; acme: 429 until ") || !strings.Contains(text, "1 of 2 rows (50%)") {
		t.Errorf("it says %q", text)
	}
	b.start("runs", "r1").wait().want(t, exitOK, "status    parked", "acme: 429 until", "(1 row waiting)", "wakes")
	b.start("rows", "r1", "--status", "held").wait().want(t, exitOK, "      2  held       held by acme until ")
	b.start("resume", "r1").wait().want(t, exitFailed, "another process is working on it")

	p.signal(syscall.SIGINT)
	r := p.wait()
	r.want(t, exitInterrupted, "run r1 is parked: 1 of 2 rows done", "its next row is due at ")
	got := r.json(t)
	if got["status"] != "parked" || got["waiting"] != 1.0 || got["parks"] != 1.0 || got["out"] != nil || got["finishedAt"] != nil {
		t.Errorf("told %v", got)
	}
	if n := b.provider.calls("hold"); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	listed := b.start("runs", "--json").wait().json(t)
	if listed["status"] != "parked" || listed["wakeAt"] == nil || listed["atWork"] != false {
		t.Errorf("listed as %v", listed)
	}
}

// Two runs at once share the provider's limit: 20 calls a second, not 20 each.
func TestTwoProcessesKeepOneLimitTogether(t *testing.T) {
	b := newBench(t)
	b.write("tools.yaml", strings.Replace(b.read("tools.yaml"), "rate: 1000", "rate: 20", 1))
	var in bytes.Buffer
	in.WriteString("x\n")
	for i := range 30 {
		fmt.Fprintf(&in, "r%d\n", i)
	}
	b.write("in.csv", in.String())
	var both []*process
	for _, id := range []string{"one", "two"} {
		both = append(both, b.start("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", id, "--out", "@"+id+".csv"))
	}
	for _, p := range both {
		p.wait().want(t, exitOK, "30 of 30 completed", "30 dispatched (0 refused with 429)")
	}
	same(t, b.read("one.csv"), b.read("two.csv"))
	b.provider.mu.Lock()
	defer b.provider.mu.Unlock()
	times := slices.SortedFunc(slices.Values(b.provider.times), time.Time.Compare)
	if len(times) != 60 {
		t.Errorf("%d calls for 60 rows", len(times))
	}
	// 60 calls at 20 a second, 20 of them at the start: 2 s. With a limit for each of them it would be half of one.
	if took := times[len(times)-1].Sub(times[0]); took < 1900*time.Millisecond {
		t.Errorf("60 calls within %v", took)
	}
}

func TestVersionComesFromTheLinker(t *testing.T) {
	newBench(t).start("version").wait().want(t, exitOK, "sluice v0.0.0-test (go")
}
