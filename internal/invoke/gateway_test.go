package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/table"
	"sluice/internal/invoke"
	"sluice/internal/memory"
	"sluice/internal/strict"
)

const tools = `
version: 1
providers: {a: {url: "https://a.example"}}
tools:
  a.get: {path: /x}
  a.post: {method: POST, path: /x}
  a.fenced: {method: POST, path: /x, fence: Idempotency-Key}
`

type invoker func(payload []byte) (invoke.Result, error)

func (f invoker) Invoke(_ context.Context, payload []byte) (invoke.Result, error) { return f(payload) }

func open(t *testing.T, f invoker) *invoke.Gateway {
	t.Helper()
	c, err := mapspec.ParseTools("t.yaml", []byte(tools))
	if err != nil {
		t.Fatal(err)
	}
	return &invoke.Gateway{Invoker: f, Run: "r", Catalogue: c, Blobs: memory.NewBlobs()}
}

func execute(t *testing.T, g *invoke.Gateway, batch ...call.Attempt) ([]call.Answer, error) {
	t.Helper()
	var mu sync.Mutex
	answers, times := make([]call.Answer, len(batch)), make([]int, len(batch))
	err := g.Execute(t.Context(), batch, func(i int, a call.Answer) {
		mu.Lock()
		defer mu.Unlock()
		answers[i], times[i] = a, times[i]+1
	})
	for i, n := range times {
		if n > 1 || n == 0 && err == nil {
			t.Errorf("attempt %d was answered %d times", i, n)
		}
	}
	return answers, err
}

var mixed = []call.Attempt{{Tool: "a.get"}, {Tool: "a.post"}, {Tool: "a.fenced", Fence: "f"}, {Tool: "a.fenced"}, {Tool: "gone"}}

// A function that died with calls in its hands may have made them.
func TestT2ADeadFunctionMayHaveMadeItsCalls(t *testing.T) {
	ends := map[string]func([]byte) (invoke.Result, error){
		"timeout":   func([]byte) (invoke.Result, error) { return failed("Sandbox.Timedout", "Task timed out") },
		"memory":    func([]byte) (invoke.Result, error) { return failed("Runtime.OutOfMemory", "") },
		"unnamed":   func([]byte) (invoke.Result, error) { return failed("wrapError", "x") },
		"no report": func([]byte) (invoke.Result, error) { return invoke.Result{Failed: true}, nil },
		"cut off":   func([]byte) (invoke.Result, error) { return invoke.Result{}, errors.New("connection reset") },
		"no JSON":   func([]byte) (invoke.Result, error) { return invoke.Result{Payload: []byte("{")}, nil },
		"too few":   func([]byte) (invoke.Result, error) { return invoke.Result{Payload: []byte(`{"answers":[]}`)}, nil },
		"object is gone": func([]byte) (invoke.Result, error) {
			return invoke.Result{Payload: []byte(`{"object":"runs/r/answers/x.json"}`)}, nil
		},
	}
	want := []call.Outcome{call.Retry, call.Unknown, call.Retry, call.Unknown, call.Unknown}
	for name, end := range ends {
		got, err := execute(t, open(t, end), mixed...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, a := range got {
			if a.Outcome != want[i] || !a.Dispatched || a.Error == nil || (a.Outcome == call.Unknown) != (a.Error.Code == "OUTCOME_UNKNOWN") {
				t.Errorf("%s: %s got %+v, want %s, dispatched", name, mixed[i].Tool, a, want[i])
			}
		}
	}
}

func failed(kind, message string) (invoke.Result, error) {
	b, err := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message})
	return invoke.Result{Payload: b, Failed: true}, err
}

// Our own platform's 429 is no provider's: nothing was sent, nothing is charged, no scope is blamed.
func TestT4H15ThrottledFunctionsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wait, end := range map[time.Duration]invoker{
			time.Second: func([]byte) (invoke.Result, error) {
				return invoke.Result{}, fmt.Errorf("x: %w", &invoke.NotStartedError{Throttled: true, Err: errors.New("429")})
			},
			2 * time.Second: func([]byte) (invoke.Result, error) { return failed("Transient", "the store is busy") },
		} {
			got, err := execute(t, open(t, end), mixed...)
			if err != nil {
				t.Error(err)
			}
			for _, a := range got {
				if a.Outcome != call.Refused || a.Dispatched || a.Scope != "" || time.Until(a.Until) != wait || a.Error != nil {
					t.Errorf("%+v, want refused for %v", a, wait)
				}
			}
		}
	})
}

// What cannot get better by waiting, and came before any dispatch, is an error: no call is charged or blamed.
func TestAFunctionThatCannotBeStartedIsAnError(t *testing.T) {
	for name, end := range map[string]invoker{
		"not there": func([]byte) (invoke.Result, error) {
			return invoke.Result{}, &invoke.NotStartedError{Err: errors.New("404")}
		},
		"BadRequest":  func([]byte) (invoke.Result, error) { return failed("BadRequest", "no") },
		"RunNotFound": func([]byte) (invoke.Result, error) { return failed("RunNotFound", "no") },
		"RunFailed":   func([]byte) (invoke.Result, error) { return failed("RunFailed", "no") },
	} {
		if got, err := execute(t, open(t, end), mixed...); err == nil || got[0].Outcome != "" {
			t.Errorf("%s: %+v, %v", name, got[0], err)
		}
	}
}

// Q8: an older function does not know permits that are validated, and says so before it dispatches anything. The same
// attempts are sent once more by the plain path, and all later ones at once; nothing is counted twice.
func TestQ8OlderFunctionsAreAskedPlainly(t *testing.T) {
	plain, asked := 0, 0
	g := open(t, func(payload []byte) (invoke.Result, error) {
		asked++
		var req struct { // of a function of before permits
			Run      string         `json:"run"`
			Attempts []call.Attempt `json:"attempts"`
		}
		if err := strict.Decode(payload, &req); err != nil {
			return failed("BadRequest", err.Error())
		}
		plain++
		res := invoke.Response{Answers: make([]call.Answer, len(req.Attempts)), Usage: table.Usage{WriteUnits: 1}}
		for i, a := range req.Attempts {
			res.Answers[i] = call.Answer{Outcome: call.Result, Dispatched: true, Status: a.Number, CostMicros: 7}
		}
		b, err := json.Marshal(res)
		return invoke.Result{Payload: b}, err
	})
	for round := range 3 {
		got, err := execute(t, g, call.Attempt{Tool: "a.post", Number: 4}, call.Attempt{Tool: "a.get", Number: 5})
		if err != nil || got[0].Status != 4 || got[1].Status != 5 {
			t.Fatalf("%+v, %v", got, err)
		}
		if plain != round+1 || asked != round+2 {
			t.Errorf("after %d rounds the function was asked %d times, and worked %d times", round+1, asked, plain)
		}
	}
	if g.Used().WriteUnits != 3 {
		t.Errorf("%+v", g.Used())
	}
}

// Q8: a request that is bad by itself is so on both paths, and is told as an error.
func TestQ8ARequestThatIsBadStaysBad(t *testing.T) {
	asked := 0
	g := open(t, func([]byte) (invoke.Result, error) { asked++; return failed("BadRequest", "no such thing") })
	if _, err := execute(t, g, call.Attempt{Tool: "a.post"}); err == nil || !strings.Contains(err.Error(), "no such thing") || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// Batches fit the payload, retries go first, and every answer finds its call.
func TestBatchesFitThePayload(t *testing.T) {
	var mu sync.Mutex
	var sizes, counts []int
	g := open(t, func(payload []byte) (invoke.Result, error) {
		var req invoke.Request
		if err := json.Unmarshal(payload, &req); err != nil || req.Run != "r" {
			t.Errorf("%v, %v", req.Run, err)
		}
		res := invoke.Response{}
		for _, a := range req.Attempts {
			res.Answers = append(res.Answers, call.Answer{Outcome: call.Result, Status: a.Number})
		}
		mu.Lock()
		sizes, counts = append(sizes, len(payload)), append(counts, len(req.Attempts))
		if req.Attempts[0].Retry != (req.Attempts[0].Number%4 == 3) {
			t.Errorf("attempt %d is first", req.Attempts[0].Number)
		}
		mu.Unlock()
		b, err := json.Marshal(res)
		return invoke.Result{Payload: b}, err
	})
	g.Batch = 8
	big := json.RawMessage(`"` + strings.Repeat("x", 600_000) + `"`)
	batch := make([]call.Attempt, 25)
	for i := range batch[:24] {
		batch[i] = call.Attempt{Tool: "a.get", Input: big, Number: i, Retry: i%4 == 3}
	}
	batch[24] = call.Attempt{Tool: "a.get", Input: json.RawMessage(`"` + strings.Repeat("x", 7<<20) + `"`)}
	got, err := execute(t, g, batch...)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range got[:24] {
		if a.Status != i {
			t.Fatalf("attempt %d got the answer of %d", i, a.Status)
		}
	}
	if a := got[24]; a.Outcome != call.Failed || a.Dispatched || a.Error.Code != "BAD_INPUT" {
		t.Errorf("7 MB: %+v", a)
	}
	total := 0
	for i, n := range sizes {
		total += counts[i]
		if n > 6<<20 || counts[i] > 8 {
			t.Errorf("a batch of %d attempts and %d bytes", counts[i], n)
		}
	}
	if total != 24 || len(sizes) != 3 { // 8 attempts of 600 KB fit 6 MB, and 10 would
		t.Errorf("%d attempts in %d batches", total, len(sizes))
	}
}

// What functions took is theirs to tell, with their memory; one that failed is billed for as long as it was waited for.
func TestTimeOfFunctionsIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := open(t, func([]byte) (invoke.Result, error) {
			asked++
			time.Sleep(time.Second)
			switch asked {
			case 1:
				return invoke.Result{Payload: []byte(`{"answers":[{"outcome":"result"}],"billed":{"millis":840,"memoryMB":256}}`)}, nil
			case 2:
				return failed("Sandbox.Timedout", "Task timed out")
			}
			return invoke.Result{Payload: []byte(`{"answers":[{"outcome":"result"}],"billed":{"millis":60,"memoryMB":256}}`)}, nil
		})
		for range 3 {
			if _, err := execute(t, g, call.Attempt{Tool: "a.get"}); err != nil {
				t.Fatal(err)
			}
		}
		if b := g.Billed(); b != (call.Billed{Millis: 840 + 1000 + 60, MemoryMB: 256}) {
			t.Errorf("billed %+v", b)
		}
	})
}
