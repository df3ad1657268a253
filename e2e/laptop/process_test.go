package laptop

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// desk is a user's folder, and the programs that were started in it.
type desk struct {
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) *desk { return &desk{t, t.TempDir()} }

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	d.t.Helper()
	return read(d.t, d.path(name))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// process is a program at work.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *buffer
	done     chan struct{}
	started  time.Time
}

// sluice starts the command in the desk's folder, where its state is then kept.
func (d *desk) sluice(args ...string) *process {
	d.t.Helper()
	return d.start(nil, sluiceProgram, args...)
}

func (d *desk) start(stdin io.Reader, program string, args ...string) *process {
	d.t.Helper()
	p := &process{t: d.t, cmd: exec.Command(program, args...), out: &buffer{}, err: &buffer{}, done: make(chan struct{}), started: time.Now()}
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = d.dir, stdin, p.out, p.err
	p.cmd.Env = append(os.Environ(), "ACME_KEY=demo-acme", "ALPHA_KEY=demo-alpha", "BETA_KEY=demo-beta", "MAIL_KEY=demo-mail", "CHAT_KEY=demo-chat")
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	d.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

// ended waits until the process has ended, at most so long, and says whether it has.
func (p *process) ended(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// want waits for the process's end and checks its exit code.
func (p *process) want(code int, within time.Duration) *process {
	p.t.Helper()
	if !p.ended(within) {
		p.t.Fatalf("sluice %s does not end within %v; it said:\n%s", strings.Join(p.cmd.Args[1:], " "), within, p.err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("sluice %s: exit code %d, want %d; it said:\n%s%s", strings.Join(p.cmd.Args[1:], " "), got, code, p.out, p.err)
	}
	return p
}

// kill is kill -9. It returns the moments before and after.
func (p *process) kill() (from, to time.Time) {
	from = time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
	return from, time.Now()
}

// summary is the object that --json prints.
type summary struct {
	ID, Status                                    string
	Total, Completed, Failed, Duplicates, Waiting int
	Calls                                         struct{ Logical, Dispatched, Refused429, Reused, Cached int }
	Slices, Parks                                 int
	Cost                                          json.Number
	AtWork                                        bool
	StartedAt, FinishedAt                         time.Time
}

func (p *process) summary() (s summary) {
	p.t.Helper()
	if err := json.Unmarshal(p.out.bytes(), &s); err != nil {
		p.t.Fatalf("standard output is not one JSON object: %v\n%s", err, p.out)
	}
	return s
}

// buffer can be looked at while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

func (b *buffer) String() string { return string(b.bytes()) }

// eventually waits until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}
