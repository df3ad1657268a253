package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

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
func (c *credentials) token(ctx context.Context, p *mapspec.Provider, secret string) (token string, until time.Time, fault *sighting) {
	defer func() {
		if fault != nil {
			fault.message = "provider " + p.Name + ": no access token: " + fault.message
		}
	}()
	endpoint, err := url.Parse(p.Auth.TokenURL)
	if err != nil || endpoint.Host == "" {
		return "", time.Time{}, &sighting{situation: clientRefused, message: "tokenURL is not a URL"}
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(p.Auth.Scopes) > 0 {
		form.Set("scope", strings.Join(p.Auth.Scopes, " "))
	}
	req := &Request{
		Method: http.MethodPost, URL: p.Auth.TokenURL, Body: []byte(form.Encode()),
		Timeout: tokenTimeout, MaxBody: tokenBody,
		Egress: Egress{Host: endpoint.Host, AllowPrivate: p.AllowPrivate},
		Turn:   c.bodies.Turn(),
	}
	defer req.Turn.End()
	setHeader(req, "Content-Type", "application/x-www-form-urlencoded")
	setHeader(req, "Accept", "application/json")
	// RFC 6749, section 2.3.1: both parts are form-encoded before they become basic credentials.
	setHeader(req, "Authorization", basic(url.QueryEscape(p.Auth.ClientID), url.QueryEscape(secret)))
	asked := time.Now()
	res, err := c.sender.Send(ctx, req)
	if err != nil || res.Status != http.StatusOK {
		return "", time.Time{}, noToken(res, err)
	}
	var answer struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	if err := json.Unmarshal(res.Body, &answer); err != nil || answer.AccessToken == "" {
		return "", time.Time{}, &sighting{situation: clientRefused, message: "the token endpoint's answer has no access_token"}
	}
	life := tokenDefault
	if s := answer.ExpiresIn; s > 0 && s < 365*24*3600 {
		life = time.Duration(s * float64(time.Second))
	}
	return answer.AccessToken, asked.Add(max(life-tokenEarly, life/2)), nil
}

// noToken says why there is no access token. The exchange pays for nothing: what was sent may be sent again.
func noToken(res *Response, err error) *sighting {
	var broken *SendError
	switch {
	case errors.As(err, &broken) && broken.Code == "EGRESS_DENIED":
		return &sighting{situation: egressDenied, message: broken.Message}
	case errors.As(err, &broken) && (broken.Code == "REDIRECT" || broken.Code == "BODY_TOO_LARGE" || broken.Code == "BAD_REQUEST"):
		return &sighting{situation: clientRefused, message: broken.Message}
	case errors.As(err, &broken):
		return &sighting{situation: tokenSilent, message: broken.Message}
	case err != nil:
		return &sighting{situation: tokenSilent, message: "the exchange failed"}
	case res.Status == http.StatusTooManyRequests: // a refusal, as of calls: no attempt
		return &sighting{situation: tokenSilent, message: "the token endpoint asks to wait"}
	case res.Status >= 500:
		return &sighting{situation: tokenRefused, message: fmt.Sprintf("the token endpoint answered %d", res.Status)}
	}
	return &sighting{situation: clientRefused, message: fmt.Sprintf("the token endpoint answered %d and refused the client", res.Status)}
}
