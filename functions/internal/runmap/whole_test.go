package runmap

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"sluice/functions/internal/ending"
	"sluice/functions/internal/toolexec"
	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/edge"
	"sluice/internal/invoke"
)

// function is toolexec as Lambda runs it. The invocations in broken end without a word, after their work.
type function struct {
	lambda.Handler
	mu          sync.Mutex
	invocations int
	broken      map[int]bool
}

func (f *function) Invoke(ctx context.Context, payload []byte) (invoke.Result, error) {
	f.mu.Lock()
	f.invocations++
	broken := f.broken[f.invocations]
	f.mu.Unlock()
	out, err := f.Handler.Invoke(context.WithoutCancel(ctx), payload)
	if broken {
		return invoke.Result{Failed: true, Payload: []byte(`{"errorType":"Runtime.ExitError"}`)}, nil
	}
	if err != nil {
		out, _ = json.Marshal(map[string]string{"errorType": edge.Name(err), "errorMessage": err.Error()})
	}
	return invoke.Result{Payload: out, Failed: err != nil}, nil
}

// sender answers every request with its last segment.
type sender struct {
	mu   sync.Mutex
	sent int
}

func (s *sender) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	what := r.URL[strings.LastIndexByte(r.URL, '/')+1:]
	return &gateway.Response{Status: 200, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`"<` + what + `>"`)}, nil
}

// Both functions together, JSON between them: an invocation of toolexec that dies costs an idempotent call a second
// request, and the table is right all the same.
func TestT2ARunSurvivesADeadToolexec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		s := &sender{}
		h := &toolexec.Handler{Catalogues: &toolexec.Stored{Store: w.Store}, Pacer: pacer.New(w.Store.Table, "toolexec"), Sender: s,
			Secrets: gatewaytest.Secrets{}, Blobs: w.Store.Blobs, Log: slog.New(slog.DiscardHandler)}
		f := &function{Handler: lambda.NewHandler(h.Handle), broken: map[int]bool{1: true}}
		w.Gateway = func(j *run.Job) call.Gateway { return invoke.New(f, j.Run.ID, j.Tools, w.Store.Blobs) }
		w.register("r", "x\n1\n2\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		for n := 0; ; n++ {
			var s SliceResult
			w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
			if s.Outcome == "done" {
				break
			}
			at, err := time.Parse(time.RFC3339, s.WakeAt)
			if err != nil || n > 10 {
				t.Fatalf("%+v, %v", s, err)
			}
			time.Sleep(time.Until(at))
		}
		w.must(`{"op":"finish","run":"r"}`, &FinishResult{})
		object, err := w.Store.Blobs.Get(t.Context(), ending.Export("r"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(object)
		if err = errors.Join(err, object.Close()); err != nil || string(text) != "x,y\n1,<1>\n2,<2>\n" {
			t.Errorf("%q, %v", text, err)
		}
		if s.sent < 3 || s.sent > 4 { // the first invocation had one or both of the calls
			t.Errorf("%d requests, %d invocations", s.sent, f.invocations)
		}
	})
}
