package coldstart

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is what a function said to its first invocation.
type answer struct {
	failed     bool
	body       []byte
	asked      time.Duration // from the start of the program to its first request for work
	answeredIn time.Duration // from the start of the program to its first answer
	cpu        time.Duration // processor time of the program: what remains of these on a machine that is busy with other things
}

// invoke starts the program, gives it one event by the runtime API, and ends it.
func invoke(t testing.TB, program, event string) answer {
	t.Helper()
	var mu sync.Mutex // guards began: what orders the start and the request is another process
	var began time.Time
	since := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Since(began)
	}
	first := true
	got, done := answer{}, make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if !first {
			<-r.Context().Done() // there is no more work
			return
		}
		first, got.asked = false, since()
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "11111111-2222-3333-4444-555555555555")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", "32503680000000")
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:f")
		_, _ = io.WriteString(w, event)
	})
	finish := func(failed bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			got.answeredIn, got.failed = since(), failed
			got.body, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			close(done)
		}
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", finish(false))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", finish(true))
	server := httptest.NewServer(mux)
	defer server.Close()
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(server.URL, "http://"), "AWS_REGION=eu-west-1",
		"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "SLUICE_TABLE=t", "SLUICE_BUCKET=b", "SLUICE_TOOLEXEC=toolexec",
		"SLUICE_RUN_MACHINE_ARN=arn:aws:states:eu-west-1:123456789012:stateMachine:run", "SLUICE_BUS=bus",
		"AWS_ENDPOINT_URL=http://127.0.0.1:1", // nothing listens there
	}
	mu.Lock()
	began = time.Now()
	err := cmd.Start()
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("no answer")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	got.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return got
}

// events are first invocations that are answered without a store, and what is answered.
var events = map[string]struct {
	event, want string
	failed      bool
}{
	"runmap":   {`{"op":"dance","run":"r"}`, `"errorType":"BadRequest"`, true},
	"toolexec": {`{"run":"r"}`, `"errorType":"BadRequest"`, true},
	"wake":     {`{"detail-type":"weather"}`, `"errorType":"BadRequest"`, true},
	"api":      {`{"httpMethod":"GET","path":"/else"}`, `"statusCode":404`, false},
}

// build builds the functions as they are deployed, for this machine.
func build(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name := range events {
		cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), "sluice/functions/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// The built functions speak to the platform, and their errors have the names that the state machines know.
func TestFunctionsAnswerThePlatform(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := build(t)
	for name, e := range events {
		got := invoke(t, filepath.Join(dir, name), e.event)
		if got.failed != e.failed || !strings.Contains(string(got.body), e.want) || !json.Valid(got.body) {
			t.Errorf("%s: %s", name, got.body)
		}
		t.Logf("%s: asked for work after %v, answered after %v", name, got.asked.Round(time.Millisecond/10), got.answeredIn.Round(time.Millisecond/10))
	}
}

// BenchmarkColdStart measures each program from its start to its first answer: the best of all rounds.
func BenchmarkColdStart(b *testing.B) {
	dir := build(b)
	for name, e := range events {
		b.Run(name, func(b *testing.B) {
			least := answer{asked: time.Hour, answeredIn: time.Hour, cpu: time.Hour}
			for b.Loop() {
				got := invoke(b, filepath.Join(dir, name), e.event)
				least.asked, least.answeredIn = min(least.asked, got.asked), min(least.answeredIn, got.answeredIn)
				least.cpu = min(least.cpu, got.cpu)
			}
			b.ReportMetric(float64(least.asked.Microseconds())/1000, "ms-to-next")
			b.ReportMetric(float64(least.answeredIn.Microseconds())/1000, "ms-to-answer")
			b.ReportMetric(float64(least.cpu.Microseconds())/1000, "ms-cpu")
		})
	}
}
