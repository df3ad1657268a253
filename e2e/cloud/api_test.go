package cloud

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice/internal/awstest"
)

// soon is ample for what takes moments, on a machine that has much else to do.
const soon = time.Minute

// view is a run as GET /runs/{id} shows it, as far as it matters here.
type view struct {
	Run, Status, Error            string
	Rows, Duplicates, Completed   int
	Failed, Shards                int
	CreatedAt, FinishedAt, WakeAt time.Time
	Stats                         struct{ Logical, Dispatched, Refused429, Slices, Parks, ResidentWaitMs, SliceMs, ToolBatches, ToolMs int }
}

// call makes a request to the API with its key.
func (s *stack) call(t *testing.T, method, path string, header map[string]string, body, into any) (status int, said string) {
	t.Helper()
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", s.key)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	status, b = exchange(t, req)
	if into != nil && status/100 == 2 {
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return status, string(b)
}

// exchange makes a request, as often as the deployment asks to make it later: the tests together may ask more than the usage
// plan of one that was there already allows.
func exchange(t *testing.T, req *http.Request) (int, []byte) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(100 * time.Millisecond) {
		status, b := exchangeOnce(t, req)
		if status != http.StatusTooManyRequests || time.Now().After(end) {
			return status, b
		}
		if req.GetBody != nil {
			req.Body, _ = req.GetBody() // of bytes in memory
		}
	}
}

func exchangeOnce(t *testing.T, req *http.Request) (int, []byte) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b
}

// order is the body of POST /runs.
type order struct {
	Run    string           `json:"run,omitempty"`
	Map    string           `json:"map"`
	Tools  string           `json:"tools,omitempty"`
	Rows   []map[string]any `json:"rows,omitempty"`
	Upload string           `json:"upload,omitempty"`
}

// start starts a run.
func (s *stack) start(t *testing.T, o order) {
	t.Helper()
	var started struct{ Run string }
	if status, said := s.call(t, http.MethodPost, "/runs", nil, o, &started); status != http.StatusAccepted || started.Run != o.Run {
		t.Fatalf("POST /runs for %s: status %d: %s", o.Run, status, said)
	}
}

// upload puts a file where a run can read it, as a client does that has no AWS credentials.
func (s *stack) upload(t *testing.T, name string, content []byte) (key string) {
	t.Helper()
	var to struct {
		Key, Method, URL string
		Headers          map[string]string
	}
	if status, said := s.call(t, http.MethodPost, "/uploads", nil, map[string]any{"name": name, "size": len(content)}, &to); status != http.StatusCreated {
		t.Fatalf("POST /uploads: status %d: %s", status, said)
	}
	req, err := http.NewRequestWithContext(t.Context(), to.Method, to.URL, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	if status, said := exchange(t, req); status != http.StatusOK {
		t.Fatalf("upload: status %d: %s", status, said)
	}
	return to.Key
}

// view asks how a run stands.
func (s *stack) view(t *testing.T, run string) (v view) {
	t.Helper()
	if status, said := s.call(t, http.MethodGet, "/runs/"+run, nil, nil, &v); status != http.StatusOK {
		t.Fatalf("GET /runs/%s: status %d: %s", run, status, said)
	}
	return v
}

// ended waits for a run's end.
func (s *stack) ended(t *testing.T, run, status string, within time.Duration) (v view) {
	t.Helper()
	deadline := time.Now().Add(within)
	for v = s.view(t, run); v.Status != "completed" && v.Status != "failed"; v = s.view(t, run) {
		if time.Now().After(deadline) {
			t.Fatalf("run %s has not ended after %v: %+v", run, within, v)
		}
		time.Sleep(300 * time.Millisecond)
	}
	if v.Status != status {
		t.Fatalf("run %s is %s, want %s: %+v", run, v.Status, status, v)
	}
	return v
}

// export fetches a completed run's table.
func (s *stack) export(t *testing.T, run string) string {
	t.Helper()
	var from struct{ Method, URL string }
	if status, said := s.call(t, http.MethodGet, "/runs/"+run+"/export", nil, nil, &from); status != http.StatusOK {
		t.Fatalf("GET /runs/%s/export: status %d: %s", run, status, said)
	}
	req, err := http.NewRequestWithContext(t.Context(), from.Method, from.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, b := exchange(t, req)
	if status != http.StatusOK {
		t.Fatalf("download: status %d: %s", status, b)
	}
	return string(b)
}

// signed makes a request to AWS itself, to the few operations for which the module has no client.
func (s *stack) signed(t *testing.T, service, method, path, target string, body, into any) error {
	t.Helper()
	b := []byte{}
	if body != nil {
		b, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.endpoint+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	if target != "" {
		req.Header.Set("X-Amz-Target", target)
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	}
	sum := sha256.Sum256(b)
	credentials, err := s.aws.Config().Credentials.Retrieve(t.Context())
	if err != nil {
		return err
	}
	if err := v4.NewSigner().SignHTTP(t.Context(), credentials, req, hex.EncodeToString(sum[:]), service, awstest.Region, time.Now()); err != nil {
		return err
	}
	status, b := exchange(t, req)
	if status != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %s", service, strings.TrimSpace(method+" "+target), status, b)
	}
	return json.Unmarshal(b, into)
}
