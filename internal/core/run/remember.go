package run

import (
	"encoding/json"
	"net/http"

	"sluice/internal/core/call"
)

// refusal marks the key under which a definite refusal is remembered.
const refusal = "!"

// rejected is remembered of a step of a waterfall that was missing or not accepted. It is no JSON.
const rejected = "-"

// remember keeps a result for identical calls of later rows, and a definite refusal too: a provider that calls a
// question wrong will not be asked it again.
func (c *caller) remember(d call.Digest, a call.Answer) {
	switch {
	case a.Outcome == call.Result || a.Outcome == call.Missing:
		c.memo.Put(d.String(), valueOf(a))
	case a.Outcome == call.Failed && definite(a.Status):
		if b, err := json.Marshal(a.Error); err == nil {
			c.memo.Put(refusal+d.String(), b)
		}
	}
}

// definite reports whether the status says that the request itself is wrong, and not the moment.
func definite(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden: // of the credential, which may change
		return false
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

func (c *caller) recall(d call.Digest) (call.Answer, bool) {
	if v, ok := c.memo.Get(d.String()); ok {
		return call.Answer{Outcome: call.Result, Value: v}, true
	}
	if v, ok := c.memo.Get(refusal + d.String()); ok {
		a := call.Answer{Outcome: call.Failed}
		return a, json.Unmarshal(v, &a.Error) == nil
	}
	return call.Answer{}, false
}
