package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sluice/internal/core/mapspec"
)

// secretFor is how long a resolved secret is kept (T6): long enough for a run's pace, short enough for a rotation.
const secretFor = time.Minute

// credential is a provider's resolved secret with the rate scope that follows from it. It is never stored or logged.
type credential struct {
	scope  string
	secret string // for oauth2, the access token
	user   string // basic
	until  time.Time
}

// ScopeName is the name of a rate scope: the provider and a digest of its credential, so that two credentials of one
// provider are paced and held separately (H2).
func ScopeName(provider, credential string) string {
	sum := sha256.Sum256([]byte(provider + "/" + credential))
	return provider + "-" + hex.EncodeToString(sum[:])[:12]
}

// credentials resolves and briefly keeps the credentials of providers.
type credentials struct {
	sender  Sender
	secrets Secrets
	bodies  *Bodies
	known   sync.Map // provider name to *slot
}

// slot is the place of one provider's credential. Its lock is held while resolving, so that a process asks once.
type slot struct {
	mu   sync.Mutex
	cred *credential
}

func (c *credentials) slot(provider string) *slot {
	if s, ok := c.known.Load(provider); ok {
		return s.(*slot)
	}
	s, _ := c.known.LoadOrStore(provider, new(slot))
	return s.(*slot)
}

// get returns the provider's credential, or why there is none.
func (c *credentials) get(ctx context.Context, p *mapspec.Provider) (*credential, *sighting) {
	s := c.slot(p.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.cred != nil && now.Before(s.cred.until) {
		return s.cred, nil
	}
	cred := &credential{user: p.Auth.User, until: now.Add(secretFor)}
	id := ""
	if p.Auth.Kind != mapspec.AuthNone {
		secret, err := c.secrets.Resolve(ctx, p.Auth.Secret)
		if err != nil {
			return nil, unresolved(p.Name, err)
		}
		id, cred.secret = secret, secret
		if p.Auth.User != "" || p.Auth.ClientID != "" {
			id = p.Auth.User + p.Auth.ClientID + ":" + secret
		}
	}
	cred.scope = ScopeName(p.Name, id)
	if p.Auth.Kind == mapspec.AuthOAuth2 {
		token, until, fault := c.token(ctx, p, cred.secret)
		if fault != nil {
			return nil, fault
		}
		cred.secret, cred.until = token, until
	}
	s.cred = cred
	return cred, nil
}

// forget drops a credential that the provider did not take: it may have been rotated.
func (c *credentials) forget(provider string) {
	s := c.slot(provider)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cred = nil
}

// unresolved tells why a secret cannot be had. A store of secrets that says that its failure is temporary is asked again
// with the call's next attempt.
func unresolved(provider string, err error) *sighting {
	s := noSecret
	var t interface{ Temporary() bool }
	if errors.As(err, &t) && t.Temporary() {
		s = secretSilent
	}
	return &sighting{situation: s, message: "provider " + provider + ": " + err.Error()}
}

// apply puts the credential into the request.
func (c *credential) apply(req *Request, auth mapspec.Auth) {
	switch auth.Kind {
	case mapspec.AuthHeader:
		format := auth.Format
		if format == "" {
			format = "${secret}"
		}
		setHeader(req, auth.Name, strings.ReplaceAll(format, "${secret}", c.secret))
	case mapspec.AuthQuery:
		sep := "?"
		if strings.Contains(req.URL, "?") {
			sep = "&"
		}
		req.URL += sep + url.QueryEscape(auth.Name) + "=" + url.QueryEscape(c.secret)
	case mapspec.AuthBasic:
		setHeader(req, "Authorization", basic(auth.User, c.secret))
	case mapspec.AuthOAuth2:
		setHeader(req, "Authorization", "Bearer "+c.secret)
	}
}

// redact removes the credential from text that a provider sent, in every form in which it was sent to the provider.
func (c *credential) redact(text string) string {
	if c.secret == "" {
		return text
	}
	const gone = "***"
	return strings.NewReplacer(
		c.secret, gone,
		url.QueryEscape(c.secret), gone,
		strings.TrimPrefix(basic(c.user, c.secret), "Basic "), gone,
		base64.StdEncoding.EncodeToString([]byte(c.secret)), gone,
	).Replace(text)
}

func setHeader(req *Request, name, value string) {
	if req.Header == nil {
		req.Header = make(http.Header, 1)
	}
	req.Header.Set(name, value)
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
