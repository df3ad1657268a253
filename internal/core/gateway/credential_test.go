package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// script answers by URL prefix and keeps what it was asked.
type script struct {
	mu    sync.Mutex
	asked []*gateway.Request
	token gateway.Response
	err   error // of the token endpoint
	api   int   // status of everything else
}

func (s *script) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	if strings.HasPrefix(r.URL, "https://login.example/") {
		return &s.token, s.err
	}
	return &gateway.Response{Status: s.api}, nil
}

type vault struct {
	mu    sync.Mutex
	value string
	err   error
	asked int
}

func (v *vault) Resolve(context.Context, string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.value, v.err
}

func single(t *testing.T, auth string, s gateway.Sender, v gateway.Secrets) func() call.Answer {
	t.Helper()
	c, err := mapspec.ParseTools("tools.yaml", []byte("version: 1\nproviders:\n  acme: {url: \"https://acme.example\", limits: [{rate: 1000, per: 1s}], auth: "+
		auth+"}\ntools:\n  acme.get: {path: /x, query: {q: \"1\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := gateway.New(gateway.Config{Catalogue: c, Sender: s, Secrets: v, Pacer: pacer.New(memory.New(), "a")})
	return func() (a call.Answer) {
		t.Helper()
		err := e.Execute(t.Context(), []call.Attempt{{Tool: "acme.get"}}, func(_ int, got call.Answer) { a = got })
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

func TestCredentialTravelsAsDeclared(t *testing.T) {
	for auth, want := range map[string]struct{ url, header, value string }{
		`{header: X-Key, value: "k=${secret};", secret: "env:K"}`: {"https://acme.example/x?q=1", "X-Key", "k=s3&cret;"},
		`{query: key, secret: "env:K"}`:                           {"https://acme.example/x?q=1&key=s3%26cret", "Authorization", ""},
		`{basic: {user: ann}, secret: "env:K"}`:                   {"https://acme.example/x?q=1", "Authorization", "Basic YW5uOnMzJmNyZXQ="},
	} {
		s := &script{api: 200}
		if a := single(t, auth, s, &vault{value: "s3&cret"})(); a.Outcome != call.Result {
			t.Errorf("%s: %+v", auth, a)
			continue
		}
		if r := s.asked[0]; r.URL != want.url || r.Header.Get(want.header) != want.value {
			t.Errorf("%s: %s with %s: %q", auth, r.URL, want.header, r.Header.Get(want.header))
		}
	}
}

// echo answers with what it was sent, as some providers do.
type echo struct{}

func (echo) Send(_ context.Context, r *gateway.Request) (*gateway.Response, error) {
	return &gateway.Response{Status: 400, Body: []byte("you sent " + r.URL + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Key"))}, nil
}

func TestT6EchoedCredentialIsRedacted(t *testing.T) {
	for auth, leak := range map[string]string{
		`{header: X-Key, value: "k=${secret};", secret: "env:K"}`: "s3&cret",
		`{query: key, secret: "env:K"}`:                           "s3%26cret",
		`{basic: {user: ann}, secret: "env:K"}`:                   "YW5uOnMzJmNyZXQ=",
	} {
		a := single(t, auth, echo{}, &vault{value: "s3&cret"})()
		if m := a.Error.Message; strings.Contains(m, leak) || !strings.Contains(m, "***") {
			t.Errorf("%s: %s", auth, m)
		}
	}
}

func TestT6SecretIsKeptBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := &script{api: 200}, &vault{value: "old"}
		get := single(t, `{header: X-Key, value: "${secret}", secret: "env:K"}`, s, v)
		get()
		get()
		if v.asked != 1 {
			t.Errorf("asked %d times within a minute", v.asked)
		}
		time.Sleep(time.Minute)
		get()
		if v.asked != 2 {
			t.Errorf("asked %d times over two minutes", v.asked)
		}
	})
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }

type answered struct{ error }

func (e answered) Unwrap() error { return e.error }
func (answered) Answered() bool  { return true }

func TestT6SecretThatCannotBeHad(t *testing.T) {
	for _, tt := range []struct {
		err     error
		outcome call.Outcome
		code    string
	}{
		{errors.New("the environment variable K is not set"), call.Failed, "SECRET_MISSING"},
		{temporary{errors.New("throttled")}, call.Retry, "SECRET_UNAVAILABLE"},
		{answered{temporary{errors.New("internal error")}}, call.Retry, "SECRET_UNAVAILABLE"},
	} {
		s := &script{api: 200}
		a := single(t, `{query: key, secret: "env:K"}`, s, &vault{err: tt.err})()
		if a.Outcome != tt.outcome || a.Error.Code != tt.code || a.Dispatched || len(s.asked) > 0 ||
			a.Charged != errors.As(tt.err, new(answered)) {
			t.Errorf("%v: %+v, %d requests", tt.err, a, len(s.asked))
		}
		if !strings.Contains(a.Error.Message, tt.err.Error()) {
			t.Errorf("the reason is missing: %s", a.Error.Message)
		}
	}
}

const oauth2 = `{oauth2: {tokenURL: "https://login.example/token", clientID: "id:1", scopes: [a, b]}, secret: "env:K"}`

func TestOAuth2TokenIsFetchedOnceAndRenewedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: 200, token: gateway.Response{Status: 200, Body: []byte(`{"access_token":"tok","expires_in":600}`)}}
		get := single(t, oauth2, s, &vault{value: "p%w"})
		for range 3 {
			if a := get(); a.Outcome != call.Result {
				t.Fatalf("%+v", a)
			}
		}
		ask := s.asked[0]
		if ask.Method != "POST" || ask.Egress.Host != "login.example" || string(ask.Body) != "grant_type=client_credentials&scope=a+b" {
			t.Errorf("token request: %s %s %s", ask.Method, ask.Egress.Host, ask.Body)
		}
		user, password, ok := (&http.Request{Header: ask.Header}).BasicAuth()
		if !ok || user != "id%3A1" || password != "p%25w" {
			t.Errorf("client credentials %q %q", user, password)
		}
		if got := s.asked[1].Header.Get("Authorization"); got != "Bearer tok" || len(s.asked) != 4 {
			t.Errorf("%q, %d requests", got, len(s.asked))
		}
		time.Sleep(571 * time.Second)
		get()
		if !strings.HasPrefix(s.asked[4].URL, "https://login.example/") {
			t.Error("the token was not renewed half a minute before its end")
		}
	})
}

func TestOAuth2TokenThatCannotBeHad(t *testing.T) {
	for _, tt := range []struct {
		name    string
		token   gateway.Response
		err     error
		outcome call.Outcome
		code    string
	}{
		{"refused", gateway.Response{Status: 401, Body: []byte(`{"error":"invalid_client"}`)}, nil, call.Failed, "AUTH_FAILED"},
		{"no token", gateway.Response{Status: 200, Body: []byte(`{}`)}, nil, call.Failed, "AUTH_FAILED"},
		{"not JSON", gateway.Response{Status: 200, Body: []byte(`<html>`)}, nil, call.Failed, "AUTH_FAILED"},
		{"down", gateway.Response{Status: 503}, nil, call.Retry, "AUTH_UNAVAILABLE"}, // charged, as it is an answer
		{"limited", gateway.Response{Status: 429}, nil, call.Retry, "AUTH_UNAVAILABLE"},
		{"lost", gateway.Response{}, &gateway.SendError{Code: "TIMEOUT", Sent: true}, call.Retry, "AUTH_UNAVAILABLE"},
		{"denied", gateway.Response{}, &gateway.SendError{Code: "EGRESS_DENIED"}, call.Failed, "EGRESS_DENIED"},
	} {
		s := &script{api: 200, token: tt.token, err: tt.err}
		a := single(t, oauth2, s, &vault{value: "pw"})()
		if a.Outcome != tt.outcome || a.Error.Code != tt.code || a.Dispatched || a.Charged != (tt.name == "down") {
			t.Errorf("%s: %+v %v", tt.name, a, a.Error)
		}
		if text, _ := json.Marshal(a); strings.Contains(string(text), "pw") {
			t.Errorf("%s: the secret is in %s", tt.name, text)
		}
	}
}
