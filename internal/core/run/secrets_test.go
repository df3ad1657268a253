package run_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/frame"
	"sluice/internal/core/gateway"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
	"sluice/internal/memory"
)

const hush = "s3cret+key/with=signs"

type keys struct{}

func (keys) Resolve(context.Context, string) (string, error) { return hush, nil }

// parrot is a provider that repeats what it was sent, wherever it can: in results, headers, refusals and failures.
func parrot(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	heard := r.URL + " " + r.Header.Get("Authorization")
	quoted, _ := json.Marshal(heard)
	header := http.Header{"Content-Type": {"application/json"}, "X-Heard": {heard}}
	switch {
	case strings.Contains(r.URL, "/r1"):
		return &gateway.Response{Status: 422, Header: header, Body: quoted}, nil
	case strings.Contains(r.URL, "/r2"):
		return &gateway.Response{Status: 500, Header: header, Body: []byte(heard)}, nil
	case strings.Contains(r.URL, "/r3"):
		return nil, &gateway.SendError{Code: "CONNECTION_LOST", Sent: true, Message: "lost"}
	case strings.Contains(r.URL, "/r4"):
		header.Set("Content-Type", "text/plain")
		return &gateway.Response{Status: 200, Header: header, Body: []byte(base64.StdEncoding.EncodeToString([]byte(hush)))}, nil
	case strings.Contains(r.URL, "/r5"):
		return &gateway.Response{Status: 401, Header: header, Body: quoted}, nil
	}
	return &gateway.Response{Status: 200, Header: header, Body: quoted}, nil
}

type senderFunc func(context.Context, *gateway.Request) (*gateway.Response, error)

func (f senderFunc) Send(ctx context.Context, r *gateway.Request) (*gateway.Response, error) {
	return f(ctx, r)
}

// kept remembers everything that was ever stored, unpacked.
type kept struct {
	table.Table
	mu  sync.Mutex
	all bytes.Buffer
}

func (k *kept) note(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.Write(b)
	k.all.WriteByte('\n')
	if plain, err := frame.Open(b); err == nil {
		k.all.Write(plain)
		k.all.WriteByte('\n')
	}
}

func (k *kept) Put(ctx context.Context, item table.Item, cond table.If) error {
	k.note([]byte(item.Part + " " + item.Sort))
	k.note(item.Data)
	return k.Table.Put(ctx, item, cond)
}

func (k *kept) PutMany(ctx context.Context, items []table.Item) error {
	for _, item := range items {
		k.note(item.Data)
	}
	return k.Table.PutMany(ctx, items)
}

// blobs notes what goes into the blob store.
type blobs struct {
	blob.Store
	of *kept
}

func (b blobs) Put(ctx context.Context, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	b.of.note(data)
	return b.Store.Put(ctx, name, bytes.NewReader(data))
}

// T6: whatever a provider repeats of its credential, it is in nothing that is stored, shown or exported: every byte that
// a run writes is looked at, unpacked.
func TestT6SecretsAreNowhere(t *testing.T) {
	for _, auth := range []string{
		`{header: Authorization, value: "Bearer ${secret}", secret: "env:K"}`, `{query: key, secret: "env:K"}`, `{basic: {user: ann}, secret: "env:K"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &kept{Table: memory.New()}
			w := newWorld(t, k)
			w.st.Blobs = blobs{memory.NewBlobs(), k}
			tools := "version: 1\nproviders:\n  a: {url: \"https://a.example\", limits: [{rate: 1000, per: 1s}], auth: " + auth + "}\n" +
				"tools:\n  a.get: {path: \"/{x}\"}\n  a.all: {path: \"/all/{x}\", result: \"${[headers, body]}\", cache: 1d}\n"
			job, err := w.startOf("r1", `version: 1
columns:
  - {name: all, call: a.all, with: {x: "${row.x}"}, onError: {value: none}}
  - {name: get, call: a.get, with: {x: "${row.x}"}}
`, tools, rows(12)...)
			if err != nil {
				t.Fatal(err)
			}
			exec := gateway.New(gateway.Config{Catalogue: job.Tools, Sender: senderFunc(parrot), Secrets: keys{}, Pacer: pacer.New(k, "p")})
			defer exec.Close(context.Background())
			for done := false; !done; {
				res, err := job.Slice(t.Context(), run.Ports{Store: w.st, Gateway: exec, Owner: itoa(w.slices)}, 0, w.settings)
				if err != nil {
					t.Fatal(err)
				}
				w.slices++
				done = res.Outcome == run.Done
				time.Sleep(time.Until(res.WakeAt))
			}
			shown := w.export(job)
			for row, err := range job.Rows(t.Context(), w.ports()) {
				if err != nil {
					t.Fatal(err)
				}
				b, _ := json.Marshal(row)
				shown += string(b)
			}
			everything := k.all.String() + shown
			for _, form := range []string{hush, "s3cret", "s3cret%2Bkey%2Fwith%3Dsigns", base64.StdEncoding.EncodeToString([]byte(hush)),
				base64.StdEncoding.EncodeToString([]byte("ann:" + hush))} {
				if i := strings.Index(everything, form); i >= 0 {
					t.Errorf("%s: %q is in %q", auth, form, everything[max(0, i-100):min(len(everything), i+100)])
				}
			}
			if strings.Count(everything, "***") < 20 || !strings.Contains(shown, "HTTP_422") || !strings.Contains(shown, "HTTP_401") {
				t.Errorf("what was looked at is not the whole: %s", shown)
			}
		})
	}
}

// T6: where the store of secrets answers that it failed, that costs the call an attempt each time; where it gives no answer,
// none, and the call is tried for the whole window.
func TestT6FailuresOfTheSecretStore(t *testing.T) {
	for charged, want := range map[bool]struct {
		least, most int
		took        time.Duration
	}{true: {4, 4, 5 * time.Second}, false: {5, 12, 2 * unsentFor}} {
		onMemory(t, func(t *testing.T, tbl table.Table) {
			w := newWorld(t, tbl)
			w.provider.answer = func(call.Attempt, int) call.Answer {
				return call.Answer{Outcome: call.Retry, Charged: charged, Error: &call.Error{Code: "SECRET_UNAVAILABLE", Message: "down"}}
			}
			began := time.Now()
			job := w.start("r1", posting, "x", "1")
			got := w.finish(job)
			if !strings.Contains(got, "one: SECRET_UNAVAILABLE: down") {
				t.Errorf("got %q", got)
			}
			n, took := len(w.provider.asked), time.Since(began)
			if n < want.least || n > want.most || took > want.took || !charged && took < unsentFor {
				t.Errorf("charged=%v: tried %d times for %v", charged, n, took)
			}
			for i, a := range w.provider.asked {
				if charged && a.number != i || !charged && a.number != 0 {
					t.Errorf("charged=%v: try %d was attempt %d", charged, i, a.number)
				}
			}
			if s := w.checkpoint(job).Stats; s.Dispatched != 0 {
				t.Errorf("%d dispatches", s.Dispatched)
			}
		})
	}
}
