package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/pacer"
	"sluice/internal/core/value"
)

// sighting is an exchange as it is recognised: its situation, with what belongs to it.
type sighting struct {
	situation
	sent    bool // a byte of the request may have left
	status  int  // of the answer; 0: there was none
	message string
	until   time.Time       // of a hold, if that is known
	value   json.RawMessage // result
	members []sighting      // result of a batch: of each call, in order
}

// classify says what an exchange means: for its call, and (unless nil) for its scope.
func classify(now time.Time, j *job, res *Response, err error) (call.Answer, *pacer.Observation) {
	return look(now, j, res, err).settle(j)
}

func (s sighting) settle(j *job) (call.Answer, *pacer.Observation) {
	v := verdictOn[s.situation]
	return v.answer(j, s), v.observation(j, s)
}

// look recognises what became of an exchange. A refusal whose body was cut is still a refusal, and an error page that is
// too large is still the error.
func look(now time.Time, j *job, res *Response, err error) sighting {
	var broken *SendError
	if err != nil {
		if !errors.As(err, &broken) { // no Sender does that; the safe reading is that the request left
			broken = &SendError{Code: "CONNECTION_LOST", Message: "the exchange failed", Sent: true}
		}
		res = broken.Response
	}
	if res != nil {
		if seen, refused := refusal(now, j, res); refused {
			return seen
		}
	}
	if broken == nil {
		return answered(j, res)
	}
	if broken.Code == "BODY_TOO_LARGE" && res != nil && res.Status >= 400 {
		return answered(j, &Response{Status: res.Status, Header: res.Header})
	}
	seen := sighting{situation: broken.situation(), sent: broken.Sent, message: broken.Message}
	if res != nil {
		seen.status = res.Status
	}
	return seen
}

// situation is what a failed exchange came to.
func (e *SendError) situation() situation {
	switch e.Code {
	case "BAD_REQUEST":
		return badInput
	case "EGRESS_DENIED":
		return egressDenied
	case "CANCELLED":
		if e.Sent {
			return stoppedSent
		}
		return stoppedUnsent
	case "TIMEOUT":
		return timedOut
	case "BODY_CUT":
		return bodyCut
	case "BODY_TOO_LARGE":
		return bodyTooLarge
	case "REDIRECT":
		return redirected
	}
	if e.Sent {
		return connectionLost
	}
	return notSent
}

// refusal reports whether the provider refused the operation for now: a 429 always (H15), a 503 if it says until when.
func refusal(now time.Time, j *job, res *Response) (sighting, bool) {
	p := j.tool.Provider
	seen := sighting{sent: true, status: res.Status}
	switch res.Status {
	case http.StatusTooManyRequests:
		if at, ok := hold.Deadline(now, res.Header, p.ResetHeaders); ok {
			seen.situation, seen.until, seen.message = limitedUntil, at, p.Name+" asks to wait"
		} else {
			seen.situation, seen.message = limited, p.Name+" asks to wait and does not say how long"
		}
		return seen, true
	case http.StatusServiceUnavailable: // reset headers speak of the quota, not of an outage
		if at, ok := hold.Deadline(now, res.Header, nil); ok {
			seen.situation, seen.until, seen.message = limitedUntil, at, p.Name+" asks to wait"
			return seen, true
		}
	}
	return sighting{}, false
}

// statuses of their own; the others go by their class.
var statuses = map[int]situation{
	401: unauthorized, 403: forbidden, 408: stalled, 425: tooEarly, 501: unimplemented, 505: badVersion,
}

var classes = map[int]situation{2: result, 3: moved, 4: otherClient, 5: otherServer}

// answered reads a whole answer.
func answered(j *job, res *Response) sighting {
	s, ok := statuses[res.Status]
	if !ok {
		if s, ok = classes[res.Status/100]; !ok {
			s = unheardOf
		}
	}
	if oversize(j, res) {
		s = tooMany
	}
	if s == result {
		return succeeded(j, res)
	}
	// A credential that is not taken must not look like a table full of nothing.
	if s != unauthorized && s != tooMany && verdictOn[s].once == call.Failed && missing(j, res) {
		s = absentStatus
	}
	message := fmt.Sprintf("%s answered %d %s", j.tool.Provider.Name, res.Status, http.StatusText(res.Status))
	return sighting{situation: s, sent: true, status: res.Status, message: withExcerpt(message, res, j)}
}

// missing reports whether an answer says of every call that there is no such thing.
func missing(j *job, res *Response) bool {
	for _, input := range j.inputs {
		if _, missing, _, err := j.tool.Interpret(res.Status, headers(res.Header), lenient(res), input); err != nil || !missing {
			return false
		}
	}
	return len(j.inputs) > 0
}

// succeeded reads an answer that the provider gives for done, by the tool's expressions.
func succeeded(j *job, res *Response) sighting {
	seen := sighting{sent: true, status: res.Status}
	body, err := decodeBody(res)
	switch {
	case errors.Is(err, value.ErrLossy): // another try would bring the same number
		seen.situation, seen.message = badResult, "the answer's body: "+err.Error()
		return seen
	case err != nil:
		seen.situation = unreadable
		seen.message = j.tool.Provider.Name + " answered with a body that is not the JSON it says it is"
		return seen
	}
	if j.tool.Batch != nil {
		return divided(j, res, body)
	}
	return interpreted(j, res, body, j.inputs[0])
}

// interpreted is what the tool's expressions make of a body.
func interpreted(j *job, res *Response, body any, input map[string]any) sighting {
	seen := sighting{sent: true, status: res.Status}
	got, missing, fail, err := j.tool.Interpret(res.Status, headers(res.Header), body, input)
	switch {
	case err != nil:
		seen.situation, seen.message = badResult, err.Error()
	case missing:
		seen.situation = absent
	case fail:
		seen.situation, seen.message = failure, withExcerpt(
			fmt.Sprintf("%s answered %d, and the tool's `fail` says that it is a failure", j.tool.Provider.Name, res.Status), res, j)
	default:
		seen.situation = result
		if seen.value, err = value.Encode(got); err != nil {
			seen = sighting{situation: badResult, sent: true, status: res.Status, message: "the tool's result: " + err.Error()}
		}
	}
	return seen
}
