package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/hold"
	"sluice/internal/core/pacer"
)

// rule says what a status, or a failed exchange, means for a call that may be repeated and for one that may not.
type rule struct {
	repeatable, once call.Outcome
	remedy           string
}

// again is for failures that may pass, after which the request may have been executed (T2).
var again = rule{repeatable: call.Retry, once: call.Unknown}

// statuses is what the classes of answers mean; a status of its own wins over its class. 2xx is read by the tool, 429
// and 503 with a deadline are holds, and the tool's `missing` is asked before a 4xx fails.
var statuses = map[int]rule{
	401: {call.Failed, call.Failed, "check the provider's credential"},
	403: {call.Failed, call.Failed, "check what the provider's credential is allowed to do"},
	408: again,
	425: {call.Retry, call.Retry, ""}, // too early: the server says that it did not process the request (RFC 8470)
	501: {call.Failed, call.Failed, "the provider does not support the tool's method"},
	505: {call.Failed, call.Failed, ""},
}

var classes = map[int]rule{
	1: {call.Failed, call.Failed, ""},
	3: {call.Failed, call.Failed, "redirects are not followed; change the provider's url or the tool's path"},
	4: {call.Failed, call.Failed, ""},
	5: again,
}

// exchanges is what failed exchanges mean, where a byte of the request may have left.
var exchanges = map[string]rule{
	"TIMEOUT":         again,
	"CONNECTION_LOST": again,
	"BODY_CUT":        again,
	"CANCELLED":       again,
	"BODY_TOO_LARGE":  {call.Failed, call.Failed, "raise the tool's maxBody if such answers are expected"},
	"REDIRECT":        {call.Failed, call.Failed, ""},
	"EGRESS_DENIED":   {call.Failed, call.Failed, ""},
}

func (r rule) outcome(repeatable bool) call.Outcome {
	if repeatable {
		return r.repeatable
	}
	return r.once
}

// classify is the one place that says what an exchange means: for its call, and (unless nil) for its scope.
func classify(now time.Time, j *job, res *Response, err error) (call.Answer, *pacer.Observation) {
	var broken *SendError
	if err != nil {
		if !errors.As(err, &broken) { // no Sender does that; the safe reading is that the request left
			broken = &SendError{Code: "CONNECTION_LOST", Message: "the exchange failed", Sent: true, Retryable: true}
		}
		res = broken.Response
	}
	if res != nil && refusal(now, res) {
		return held(now, j, res)
	}
	if broken != nil {
		return exchangeFailed(j, broken), nil
	}
	var seen *pacer.Observation
	if res.Status < 500 {
		seen = &pacer.Observation{}
	}
	a := answered(j, res)
	a.Dispatched, a.Status = true, res.Status
	return a, seen
}

// refusal reports whether the provider refused the operation for now: a 429 always (H15), a 503 if it says until when.
func refusal(now time.Time, res *Response) bool {
	switch res.Status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		_, ok := hold.Deadline(now, res.Header, nil)
		return ok
	}
	return false
}

func held(now time.Time, j *job, res *Response) (call.Answer, *pacer.Observation) {
	p := j.tool.Provider
	seen := &pacer.Observation{Limited: true, Cooldown: p.Cooldown}
	message := p.Name + " asks to wait"
	if until, ok := hold.Deadline(now, res.Header, p.ResetHeaders); ok {
		seen.Deadline = until
	} else {
		message = p.Name + " asks to wait and does not say how long"
	}
	return call.Answer{Outcome: call.Held, Dispatched: true, Status: res.Status,
		Error: &call.Error{Code: statusCode(res.Status), Message: message}}, seen
}

func exchangeFailed(j *job, e *SendError) call.Answer {
	a := call.Answer{Dispatched: e.Sent}
	if e.Response != nil {
		a.Status = e.Response.Status
	}
	r, known := exchanges[e.Code]
	switch {
	case !e.Sent && (e.Retryable || e.Code == "CANCELLED"):
		a.Outcome = call.Retry
	case !e.Sent:
		a.Outcome = call.Failed
	case !known && e.Retryable:
		r = again
		fallthrough
	default:
		if a.Outcome = r.outcome(j.repeatable()); a.Outcome == "" {
			a.Outcome = call.Failed
		}
	}
	a.Error = &call.Error{Code: e.Code, Message: withRemedy(e.Message, r.remedy)}
	return unknown(a)
}

// answered reads a complete answer.
func answered(j *job, res *Response) call.Answer {
	if res.Status/100 == 2 {
		return success(j, res)
	}
	r, ok := statuses[res.Status]
	if !ok {
		if r, ok = classes[res.Status/100]; !ok {
			r = again
		}
	}
	a := call.Answer{Outcome: r.outcome(j.repeatable())}
	if a.Outcome == call.Failed && missing(j, res) {
		return call.Answer{Outcome: call.Missing}
	}
	message := fmt.Sprintf("%s answered %d %s", j.tool.Provider.Name, res.Status, http.StatusText(res.Status))
	a.Error = &call.Error{Code: statusCode(res.Status), Message: withRemedy(withExcerpt(message, res, j), r.remedy)}
	return unknown(a)
}

// unknown gives an outcome that nobody knows its code (T2); what was seen stays in the message.
func unknown(a call.Answer) call.Answer {
	if a.Outcome == call.Unknown {
		a.Error = &call.Error{Code: "OUTCOME_UNKNOWN", Message: a.Error.Message +
			"; the call may have been executed, and its tool is neither idempotent nor fenced"}
	}
	return a
}

func missing(j *job, res *Response) bool {
	body, err := decodeBody(res)
	if err != nil {
		body = string(res.Body)
	}
	_, missing, _, err := j.tool.Interpret(res.Status, headers(res.Header), body, j.input)
	return err == nil && missing
}

func statusCode(status int) string { return fmt.Sprintf("HTTP_%d", status) }

func withRemedy(message, remedy string) string {
	if remedy == "" {
		return message
	}
	return message + "; " + remedy
}
