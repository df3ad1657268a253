package awstest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	startTimeout = 90 * time.Second // about two on an idle machine
	startPoll    = 20 * time.Millisecond
	stopTimeout  = 10 * time.Second
	logTail      = 4000 // bytes of a log that an error quotes
)

// process is an emulator's. It ends when its standard input does, which happens at the latest when the test binary
// dies, however it dies.
type process struct {
	aws   AWS
	dir   string // for all that it writes
	leash io.Closer
	kill  func() error
	ended chan struct{}
}

// startMinistack picks the port itself: ministack wants to know it, to tell the functions that it runs.
func startMinistack(root string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	url := "http://" + net.JoinHostPort(loopback, port)
	p, err := start(url, []string{
		"BIND_HOST=" + loopback, "GATEWAY_PORT=" + port, "IOT_MTLS_ENABLED=0",
		"AWS_ENDPOINT_URL=" + url, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_DEFAULT_REGION=" + Region,
		"PYTHONUNBUFFERED=1",
	}, filepath.Join(root, "build", "venv", "bin", "python"), filepath.Join(root, "e2e", "python", "emulator.py"))
	if err != nil {
		return nil, err
	}
	return p, p.await(func() bool {
		resp, err := http.Get(url + "/_ministack/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// startDynalite reads the port from what it prints.
func startDynalite(root string) (*process, error) {
	p, err := start("", []string{"NODE_PATH=" + filepath.Join(root, "build", "node", "node_modules")},
		"node", filepath.Join(root, "e2e", "node", "dynalite.js"))
	if err != nil {
		return nil, err
	}
	return p, p.await(func() bool {
		out, _ := os.ReadFile(p.aws.Log)
		port, _, printed := strings.Cut(string(out), "\n")
		p.aws.URL = "http://" + net.JoinHostPort(loopback, port)
		return printed
	})
}

const loopback = "127.0.0.1"

func freePort() (string, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// start runs a command with env and, besides, no more than what any program needs.
func start(url string, env []string, name string, args ...string) (*process, error) {
	dir, err := os.MkdirTemp("", "sluice-aws-")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir)
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("awstest: %w", err)
	}
	p := &process{aws: AWS{URL: url, Log: log.Name()}, dir: dir, leash: leash, kill: cmd.Process.Kill, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.ended)
	}()
	return p, nil
}

// await returns when ready says so, and otherwise with the end of the log.
func (p *process) await(ready func() bool) error {
	deadline := time.After(startTimeout)
	for {
		if ready() {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("awstest: the emulator ended at once:\n%s", p.tail())
		case <-deadline:
			return fmt.Errorf("awstest: the emulator does not answer after %s:\n%s", startTimeout, p.tail())
		case <-time.After(startPoll):
		}
	}
}

func (p *process) tail() string {
	log, err := os.ReadFile(p.aws.Log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTail):])
}

// stop lets the process end, so that it can end what it started itself.
func (p *process) stop() {
	_ = p.leash.Close()
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.kill()
		<-p.ended
	}
	_ = os.RemoveAll(p.dir)
}
