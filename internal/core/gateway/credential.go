package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sluice/internal/core/mapspec"
)

// credential is a provider's resolved secret with the rate scope that follows from it. It is never stored or logged.
type credential struct {
	scope  string
	secret string // as it was resolved
	sent   string // what is sent: the secret, or for oauth2 the access token
	until  time.Time

	renewed  bool        // it took the place of one that the provider did not take
	accepted atomic.Bool // the provider has taken it

	forms    [][]byte // in which it could be recognised
	replacer *strings.Replacer
}

// ScopeName is the name of a rate scope: the provider and a digest of its credential, so that two credentials of one
// provider are paced and held separately (H2).
func ScopeName(provider, credential string) string {
	sum := sha256.Sum256([]byte(provider + "/" + credential))
	return provider + "-" + hex.EncodeToString(sum[:])[:12]
}

// scopeOf is the scope of the provider with this secret.
func scopeOf(p *mapspec.Provider, secret string) string {
	if p.Auth.User != "" || p.Auth.ClientID != "" {
		secret = p.Auth.User + p.Auth.ClientID + ":" + secret
	}
	return ScopeName(p.Name, secret)
}

// apply puts the credential into the request.
func (c *credential) apply(req *Request, auth mapspec.Auth) {
	switch auth.Kind {
	case mapspec.AuthHeader:
		format := auth.Format
		if format == "" {
			format = "${secret}"
		}
		setHeader(req, auth.Name, strings.ReplaceAll(format, "${secret}", c.sent))
	case mapspec.AuthQuery:
		sep := "?"
		if strings.Contains(req.URL, "?") {
			sep = "&"
		}
		req.URL += sep + url.QueryEscape(auth.Name) + "=" + url.QueryEscape(c.sent)
	case mapspec.AuthBasic:
		setHeader(req, "Authorization", basic(auth.User, c.sent))
	case mapspec.AuthOAuth2:
		setHeader(req, "Authorization", "Bearer "+c.sent)
	}
}

// minRedacted is the length from which a credential is removed from results. A shorter one would be found in data that
// has nothing to do with it; from messages it is removed all the same.
const minRedacted = 8

// recognise prepares the forms in which a provider could send the credential back.
func (c *credential) recognise(user string) {
	var pairs []string
	for _, s := range []string{c.sent, c.secret} {
		if s == "" {
			continue
		}
		quoted, _ := json.Marshal(s)
		plain := base64.StdEncoding.EncodeToString([]byte(s))
		for _, form := range []string{
			s, url.QueryEscape(s), url.PathEscape(s), string(quoted[1 : len(quoted)-1]),
			strings.TrimPrefix(basic(user, s), "Basic "), plain, strings.TrimRight(plain, "="),
		} {
			pairs = append(pairs, form, "***")
			if len(s) >= minRedacted {
				c.forms = append(c.forms, []byte(form))
			}
		}
	}
	slices.SortFunc(c.forms, bytes.Compare)
	c.forms = slices.CompactFunc(c.forms, bytes.Equal)
	c.replacer = strings.NewReplacer(pairs...)
}

// redact removes the credential from text that a provider sent, in every form in which it was sent to the provider.
func (c *credential) redact(text string) string {
	if c == nil || c.replacer == nil {
		return text
	}
	return c.replacer.Replace(text)
}

// scrub removes the credential from an answer, before anything is made of it: what a provider echoes must not end in a
// cell (T6).
func (c *credential) scrub(res *Response) {
	if c == nil || res == nil || len(c.forms) == 0 {
		return
	}
	within := func(b []byte) bool {
		return slices.ContainsFunc(c.forms, func(form []byte) bool { return bytes.Contains(b, form) })
	}
	if within(res.Body) {
		res.Body = []byte(c.redact(string(res.Body)))
	}
	for name, values := range res.Header {
		for i, v := range values {
			if within([]byte(v)) {
				res.Header = res.Header.Clone() // the loop goes on over the original
				res.Header[name][i] = c.redact(v)
			}
		}
	}
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
