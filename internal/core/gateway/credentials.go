package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
)

// The life of a credential in this process (T6).
const (
	// secretFor is how long a resolved secret is kept: long enough for a run's pace, short enough for a rotation.
	secretFor = time.Minute
	// faultFor is how long a failure to resolve is the answer to everybody: calls come in batches, and each of them would
	// wait for a store of secrets that is down.
	faultFor = time.Second
	// rejectedAgain is how soon after a look at a secret that the provider did not take it is looked at again.
	rejectedAgain = time.Second
	// resolveTimeout is when a store of secrets counts as silent.
	resolveTimeout = 10 * time.Second
	// unreadWait is for how long calls are held whose credential was not taken, while it cannot be read again.
	unreadWait = 2 * time.Second
)

// credentials resolves and briefly keeps the credentials of providers.
type credentials struct {
	sender  Sender
	secrets Secrets
	bodies  *Bodies
	known   sync.Map // provider name to *slot
}

// slot is the place of one provider's credential.
type slot struct {
	lock    chan struct{} // holds one token while it is free; a process asks for a secret once
	cred    atomic.Pointer[credential]
	fault   *sighting // why there is none
	faultAt time.Time
	checked time.Time // when it was last read after the provider had not taken it
}

func (c *credentials) slot(provider string) *slot {
	if s, ok := c.known.Load(provider); ok {
		return s.(*slot)
	}
	fresh := &slot{lock: make(chan struct{}, 1)}
	fresh.lock <- struct{}{}
	s, _ := c.known.LoadOrStore(provider, fresh)
	return s.(*slot)
}

// hold takes the slot, unless ctx ends first.
func (s *slot) hold(ctx context.Context) (release func(), ok bool) {
	select {
	case <-s.lock:
		return func() { s.lock <- struct{}{} }, true
	case <-ctx.Done():
		return nil, false
	}
}

// get returns the provider's credential, or why there is none.
func (c *credentials) get(ctx context.Context, p *mapspec.Provider) (*credential, *sighting) {
	s := c.slot(p.Name)
	release, ok := s.hold(ctx)
	if !ok {
		return nil, &sighting{situation: stoppedUnsent, message: "cancelled before the credential was there"}
	}
	defer release()
	now := time.Now()
	if cred := s.cred.Load(); cred != nil && now.Before(cred.until) {
		return cred, nil
	}
	if s.fault != nil && now.Sub(s.faultAt) < faultFor {
		return nil, s.fault
	}
	cred, fault := c.resolve(ctx, p)
	if fault != nil {
		if ctx.Err() == nil { // of a caller that has gone, it says nothing to the others
			s.fault, s.faultAt = fault, time.Now()
		}
		return nil, fault
	}
	s.cred.Store(cred)
	s.fault = nil
	return cred, nil
}

// resolve reads the secret, and gets a token with it if need be.
func (c *credentials) resolve(ctx context.Context, p *mapspec.Provider) (*credential, *sighting) {
	cred := &credential{until: time.Now().Add(secretFor)}
	if p.Auth.Kind == mapspec.AuthNone {
		cred.scope = scopeOf(p, "")
		return cred, nil
	}
	secret, fault := c.read(ctx, p)
	if fault != nil {
		return nil, fault
	}
	cred.scope, cred.secret, cred.sent = scopeOf(p, secret), secret, secret
	if p.Auth.Kind == mapspec.AuthOAuth2 {
		if cred.sent, cred.until, fault = c.token(ctx, p, secret); fault != nil {
			return nil, fault
		}
	}
	cred.recognise(p.Auth.User)
	return cred, nil
}

func (c *credentials) read(ctx context.Context, p *mapspec.Provider) (string, *sighting) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	secret, err := c.secrets.Resolve(ctx, p.Auth.Secret)
	if err != nil {
		return "", unresolved(p.Name, err)
	}
	return secret, nil
}

// unresolved tells why a secret cannot be had. A store that says that its failure is temporary is asked again with the
// call's next attempt, which costs that attempt if the store did answer.
func unresolved(provider string, err error) *sighting {
	s := noSecret
	var passing interface{ Temporary() bool }
	var answered interface{ Answered() bool }
	if errors.As(err, &passing) && passing.Temporary() {
		s = secretSilent
		if errors.As(err, &answered) && answered.Answered() {
			s = secretRefused
		}
	}
	return &sighting{situation: s, message: "provider " + provider + ": " + err.Error()}
}

// rejected is told that the provider did not take a credential, in answer to a request of the given time. It reads the
// secret again, once for all requests of that time, and returns what the answer means now: nothing else if it is still
// the same.
func (c *credentials) rejected(ctx context.Context, p *mapspec.Provider, used *credential, status int, at time.Time) (situation, bool) {
	if p.Auth.Kind == mapspec.AuthNone {
		return "", false
	}
	s := c.slot(p.Name)
	release, ok := s.hold(ctx)
	if !ok {
		return unread, true
	}
	defer release()
	switch now := s.cred.Load(); {
	case now != nil && now.sent != used.sent:
		return renewed, true // somebody was faster
	case at.Before(s.checked.Add(rejectedAgain)):
		return "", false
	}
	began := time.Now()
	fresh, fault := c.reread(ctx, p, used, status)
	switch {
	case fault != nil && ctx.Err() == nil && verdictOn[fault.situation].once != call.Retry:
		return "", false
	case fault != nil:
		return unread, true
	}
	s.checked = began
	if fresh == nil || fresh.sent == used.sent {
		return "", false
	}
	fresh.renewed = true
	s.cred.Store(fresh)
	s.fault = nil
	return renewed, true
}

// reread resolves the credential again. A token is asked for again only where it can help: its provider said 401, and not
// to a token that had just been renewed for that reason. Otherwise it is nil, unless the secret behind it is another.
func (c *credentials) reread(ctx context.Context, p *mapspec.Provider, used *credential, status int) (*credential, *sighting) {
	if p.Auth.Kind == mapspec.AuthOAuth2 && (status != http.StatusUnauthorized || used.renewed && !used.accepted.Load()) {
		secret, fault := c.read(ctx, p)
		if fault != nil || secret == used.secret {
			return nil, fault
		}
	}
	return c.resolve(ctx, p)
}

// stale reports whether the request was built with a credential that the provider does not take any more.
func (c *credentials) stale(p *mapspec.Provider, used *credential) bool {
	now := c.slot(p.Name).cred.Load()
	return now != nil && now.renewed && now.sent != used.sent
}
