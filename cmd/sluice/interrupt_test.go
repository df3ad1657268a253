package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// While input is awaited nothing can be parked: the first Ctrl-C ends the program, though the pipe says nothing.
func TestInterruptWhileTheInputIsReadEndsAtOnce(t *testing.T) {
	for _, command := range []string{"run", "validate"} {
		b := newBench(t)
		silent, feed := io.Pipe()
		defer feed.Close()
		var out, err syncBuffer
		a := &app{stdin: silent, stdout: &out, stderr: &err, signals: b.signals, secrets: b, getenv: func(string) string { return "" }}
		done := make(chan int)
		go func() {
			done <- a.run(b.args([]string{command, "@map.yaml", "--tools", "@tools.yaml", "--in", "-"}))
		}()
		if _, err := feed.Write([]byte("x")); err != nil { // it reads
			t.Fatal(err)
		}
		b.signals <- syscall.SIGINT
		if code := <-done; code != exitInterrupted || err.String() != "sluice: interrupted\n" {
			t.Errorf("%s: exit code %d, said %q", command, code, err.String())
		}
	}
}

// A wrapper that passes on the Ctrl-C that the terminal sent already must not turn a park into a stop.
func TestADoubledSignalCountsOnce(t *testing.T) {
	i := (&app{stderr: io.Discard, signals: make(chan os.Signal)}).interruption()
	defer i.end()
	var said strings.Builder
	i.working(func(s string) { said.WriteString(s) })
	after := func(d time.Duration) { // the last signal was so long ago
		i.mu.Lock()
		defer i.mu.Unlock()
		i.at = time.Now().Add(-d)
	}
	i.signal()
	<-i.stop
	after(-time.Minute) // however slow this machine is, the next one is at its heels
	i.signal()
	if i.ctx.Err() != nil || strings.Count(said.String(), "parking") != 1 {
		t.Errorf("stopped, or told twice: %q", said.String())
	}
	after(sameSignal)
	i.signal()
	if i.ctx.Err() == nil {
		t.Error("a second Ctrl-C does not stop")
	}
}
