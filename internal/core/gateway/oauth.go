package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
)

// Limits of the exchange with a token endpoint.
const (
	tokenTimeout = 20 * time.Second
	tokenBody    = 1 << 20
	tokenDefault = 5 * time.Minute // where the endpoint does not say how long a token lives
	tokenEarly   = 30 * time.Second
)

// token gets an access token by client credentials (RFC 6749, section 4.4), through the same Sender as calls, so that
// the same limits of egress hold. The exchange pays for nothing and may be repeated.
func (c *credentials) token(ctx context.Context, p *mapspec.Provider, secret string) (string, time.Time, *call.Answer) {
	endpoint, err := url.Parse(p.Auth.TokenURL)
	if err != nil || endpoint.Host == "" {
		return "", time.Time{}, failed("AUTH_FAILED", "provider "+p.Name+": tokenURL is not a URL")
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(p.Auth.Scopes) > 0 {
		form.Set("scope", strings.Join(p.Auth.Scopes, " "))
	}
	req := &Request{
		Method: http.MethodPost, URL: p.Auth.TokenURL, Body: []byte(form.Encode()),
		Timeout: tokenTimeout, MaxBody: tokenBody,
		Egress: Egress{Host: endpoint.Host, AllowPrivate: p.AllowPrivate},
	}
	setHeader(req, "Content-Type", "application/x-www-form-urlencoded")
	setHeader(req, "Accept", "application/json")
	// RFC 6749, section 2.3.1: both parts are form-encoded before they become basic credentials.
	setHeader(req, "Authorization", basic(url.QueryEscape(p.Auth.ClientID), url.QueryEscape(secret)))
	asked := time.Now()
	res, err := c.sender.Send(ctx, req)
	if err != nil || res.Status != http.StatusOK {
		return "", time.Time{}, noToken(p.Name, res, err)
	}
	var answer struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	if err := json.Unmarshal(res.Body, &answer); err != nil || answer.AccessToken == "" {
		return "", time.Time{}, failed("AUTH_FAILED", "provider "+p.Name+": the token endpoint's answer has no access_token")
	}
	life := tokenDefault
	if s := answer.ExpiresIn; s > 0 && s < 365*24*3600 {
		life = time.Duration(s * float64(time.Second))
	}
	return answer.AccessToken, asked.Add(max(life-tokenEarly, life/2)), nil
}

func noToken(provider string, res *Response, err error) *call.Answer {
	message := "provider " + provider + ": no access token: "
	var se *SendError
	switch {
	case errors.As(err, &se):
		a := failed("AUTH_UNAVAILABLE", message+se.Message)
		if se.Retryable {
			a.Outcome = call.Retry
		}
		return a
	case err != nil:
		return failed("AUTH_UNAVAILABLE", message+"the exchange failed")
	case res.Status == http.StatusTooManyRequests || res.Status >= 500:
		a := failed("AUTH_UNAVAILABLE", message+"the token endpoint answered "+http.StatusText(res.Status))
		a.Outcome = call.Retry
		return a
	}
	return failed("AUTH_FAILED", message+"the token endpoint refused the client: check clientID and secret")
}
