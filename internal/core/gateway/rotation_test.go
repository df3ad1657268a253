package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/memory"
)

// bank is a provider that takes one key, and gives tokens for one client secret.
type bank struct {
	mu       sync.Mutex
	key      string // what it takes
	client   string // oauth2: the secret for which it gives the key as a token
	status   int    // of what it does not take; 0: 401
	requests int
	tokens   int
}

func (b *bank) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	time.Sleep(10 * time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasPrefix(r.URL, "https://login.example/") {
		b.tokens++
		if _, password, _ := (&http.Request{Header: r.Header}).BasicAuth(); password != b.client {
			return &gateway.Response{Status: 401}, nil
		}
		return &gateway.Response{Status: 200, Body: fmt.Appendf(nil, `{"access_token":%q,"expires_in":3600}`, b.key)}, nil
	}
	b.requests++
	if got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); got != b.key {
		return &gateway.Response{Status: max(b.status, 401)}, nil
	}
	return &gateway.Response{Status: 200}, nil
}

const bearer = `{header: Authorization, value: "Bearer ${secret}", secret: "env:K"}`

// T6: a key that was rotated is picked up with the first refusal. The call is made again and charged no attempt.
func TestT6RotationIsPickedUpWithoutARestart(t *testing.T) {
	for _, status := range []int{401, 403} {
		synctest.Test(t, func(t *testing.T) {
			b, v := &bank{key: "one", status: status}, &vault{value: "one"}
			get := single(t, bearer, b, v)
			if a := get(); a.Outcome != call.Result {
				t.Fatalf("%+v", a)
			}
			b.key, v.value = "two", "two"
			a := get()
			if a.Outcome != call.Held || !a.Dispatched || a.Charged || a.Status != status || a.Until.After(time.Now()) || !a.Refusal() {
				t.Errorf("%+v, want held until now, and no attempt charged", a)
			}
			if a = get(); a.Outcome != call.Result || v.asked != 2 || b.requests != 3 {
				t.Errorf("then %+v; the secret was read %d times, %d requests", a, v.asked, b.requests)
			}
		})
	}
}

// T6: a refusal of a secret that is still the same is one. The secret is read once for all calls of a moment.
func TestT6ASecretThatDidNotChangeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := &bank{key: "other"}, &vault{value: "wrong"}
		get := single(t, bearer, b, v)
		for range 20 {
			if a := get(); a.Outcome != call.Failed || a.Error.Code != "HTTP_401" || !strings.Contains(a.Error.Message, "check the provider's credential") {
				t.Fatalf("%+v %v", a, a.Error)
			}
		}
		if v.asked != 2 { // at first, and after the first refusal
			t.Errorf("read %d times within a fifth of a second", v.asked)
		}
		time.Sleep(time.Second)
		b.key, v.value = "right", "right"
		if a := get(); a.Outcome != call.Held {
			t.Errorf("a later rotation is not seen: %+v", a)
		}
	})
}

// T6: of a batch that is on its way when the key is rotated, every call is made again, and none has failed.
func TestT6ABatchSurvivesARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := &bank{key: "one"}, &vault{value: "one"}
		c, err := mapspec.ParseTools("tools.yaml", []byte(`{version: 1, providers: {acme: {url: "https://acme.example", limits: [{rate: 100, per: 1s}], auth: `+
			bearer+`}}, tools: {acme.get: {path: /x}}}`))
		if err != nil {
			t.Fatal(err)
		}
		e := gateway.New(gateway.Config{Catalogue: c, Sender: b, Secrets: v, Pacer: pacer.New(memory.New(), "a")})
		execute := func(n int) map[call.Outcome]int {
			var mu sync.Mutex
			got := map[call.Outcome]int{}
			if err := e.Execute(t.Context(), slices.Repeat([]call.Attempt{{Tool: "acme.get"}}, n), func(_ int, a call.Answer) {
				mu.Lock()
				got[a.Outcome]++
				mu.Unlock()
				if a.Outcome == call.Refused && a.Dispatched || a.Charged {
					t.Errorf("%+v", a)
				}
			}); err != nil {
				t.Error(err)
			}
			return got
		}
		execute(1)
		b.key, v.value = "two", "two"
		got := execute(10)
		if got[call.Held] == 0 || got[call.Held]+got[call.Refused] != 10 || b.requests > 1+4 { // 10 ms apart; the others were not sent
			t.Errorf("%v with %d requests", got, b.requests)
		}
		if got := execute(10); got[call.Result] != 10 || v.asked != 2 {
			t.Errorf("then %v; the secret was read %d times", got, v.asked)
		}
	})
}

// T6: while the secret cannot be read again, the calls wait; they do not fail for a store that is down.
func TestT6ARefusalWhileTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := &bank{key: "one"}, &vault{value: "one"}
		get := single(t, bearer, b, v)
		get()
		b.key, v.value, v.err = "two", "two", temporary{errors.New("no route")}
		if a := get(); a.Outcome != call.Held || !a.Until.After(time.Now().Add(time.Second)) || a.Charged {
			t.Errorf("%+v, want held", a)
		}
		v.err = nil
		if a := get(); a.Outcome != call.Held {
			t.Errorf("%+v", a)
		}
		if a := get(); a.Outcome != call.Result {
			t.Errorf("%+v", a)
		}
	})
}

// T6: a token that is refused is asked for again, once: a fresh one that is refused as well is the end. What the provider
// forbids says nothing of the token.
func TestT6OAuth2TokenThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{key: "tok-1", client: "pw"}
		get := single(t, oauth2, b, &vault{value: "pw"})
		get()
		b.key = "tok-2" // all tokens were revoked
		if a := get(); a.Outcome != call.Held || b.tokens != 2 {
			t.Errorf("%+v, %d tokens", a, b.tokens)
		}
		if a := get(); a.Outcome != call.Result {
			t.Errorf("%+v", a)
		}
		fickle := &refusing{bank: b}
		get = single(t, oauth2, fickle, &vault{value: "pw"})
		if a := get(); a.Outcome != call.Held {
			t.Errorf("%+v", a)
		}
		time.Sleep(2 * time.Second)
		if a := get(); a.Outcome != call.Failed || a.Error.Code != "HTTP_401" {
			t.Errorf("a fresh token that is refused as well: %+v", a)
		}
		fickle.forbid = true
		time.Sleep(2 * time.Second)
		had := b.tokens
		if a := get(); a.Outcome != call.Failed || a.Error.Code != "HTTP_403" || b.tokens != had {
			t.Errorf("forbidden: %+v, %d further tokens", a, b.tokens-had)
		}
	})
}

// refusing gives ever new tokens and takes none of them.
type refusing struct {
	*bank
	forbid bool
}

func (r *refusing) Send(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	if strings.HasPrefix(req.URL, "https://login.example/") {
		r.key = fmt.Sprintf("tok-%d", 100+r.tokens)
		return r.bank.Send(ctx, req)
	}
	if r.forbid {
		return &gateway.Response{Status: 403}, nil
	}
	return &gateway.Response{Status: 401}, nil
}

// waiting is a store of secrets that gives no answer.
type waiting struct {
	mu    sync.Mutex
	asked int
}

func (w *waiting) Resolve(ctx context.Context, _ string) (string, error) {
	w.mu.Lock()
	w.asked++
	w.mu.Unlock()
	<-ctx.Done()
	return "", temporary{ctx.Err()}
}

// T6: a silent store of secrets is waited for once by all calls of a batch, and charges none of them an attempt.
func TestT6SilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{}
		get := single(t, bearer, &bank{}, w)
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if a := get(); a.Outcome != call.Retry || a.Charged || a.Dispatched || a.Error.Code != "SECRET_UNAVAILABLE" {
					t.Errorf("%+v", a)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); w.asked != 1 || took != 10*time.Second {
			t.Errorf("asked %d times for %v", w.asked, took)
		}
	})
}

// T6, R10: the end of the run stops whoever waits for a secret, and whoever waits in line behind them.
func TestT6CancellationStopsWaitingForASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := mapspec.ParseTools("tools.yaml", []byte(`{version: 1, providers: {acme: {url: "https://acme.example", auth: `+bearer+`}}, tools: {acme.get: {path: /x}}}`))
		if err != nil {
			t.Fatal(err)
		}
		b := &bank{}
		e := gateway.New(gateway.Config{Catalogue: c, Sender: b, Secrets: &waiting{}, Pacer: pacer.New(memory.New(), "a")})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				err := e.Execute(ctx, []call.Attempt{{Tool: "acme.get"}}, func(_ int, a call.Answer) { t.Errorf("answered: %+v", a) })
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		if took := time.Since(start); took != time.Second || b.requests != 0 {
			t.Errorf("it took %v, %d requests", took, b.requests)
		}
	})
}
