package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// server is `sluice serve` as a process.
type server struct {
	*process
	url string
}

var serving = regexp.MustCompile(`serving (http://\S+),`)

// serve starts a server over the bench's state folder.
func (b *bench) serve(flags ...string) *server {
	b.t.Helper()
	p := b.start(append([]string{"serve", "--addr", "127.0.0.1:0"}, flags...)...)
	var found []string
	eventually(b.t, "it serves", func() bool {
		select {
		case <-p.done:
			b.t.Fatalf("it has ended: %s", p.err)
		default:
		}
		found = serving.FindStringSubmatch(p.err.String())
		return found != nil
	})
	return &server{p, found[1]}
}

func TestServeEndsWithASignal(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	s.signal(syscall.SIGTERM)
	s.wait().want(t, exitOK)
}

func TestServeRefusesToBeOpenToEverybody(t *testing.T) {
	b := newBench(t)
	b.sluice("serve", "--addr", "0.0.0.0:0").want(t, exitUsage, "can be reached from other machines: set a key in SLUICE_SERVE_KEY")
	b.sluice("serve", "--addr", ":0").want(t, exitUsage, "set a key")
	b.sluice("serve", "--key", "short").want(t, exitUsage, "the key has 5 characters; give it 16 or more")
	s := b.serve()
	b.sluice("serve", "--addr", strings.TrimPrefix(s.url, "http://")).want(t, exitUsage, "address already in use")
}
