package gateway

import (
	"fmt"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
)

// situation is what became of an attempt, in the words of docs/errors.md.
type situation string

// Before an exchange.
const (
	noTool         situation = "the catalogue has no such tool"
	badInput       situation = "the input does not fit the tool, or a value of it cannot be sent"
	noSecret       situation = "there is no such secret, or it may not be read"
	secretRefused  situation = "the store of secrets answered with a failure that may pass"
	secretSilent   situation = "the store of secrets gave no answer"
	clientRefused  situation = "the token endpoint refused the client"
	tokenRefused   situation = "the token endpoint answered with a failure that may pass"
	tokenSilent    situation = "the token endpoint could not be reached, or gave no answer"
	egressDenied   situation = "the address is not the provider's, or not a public one"
	notSent        situation = "no byte of the request left: name not found, refused, no route, TLS"
	stoppedUnsent  situation = "the run was stopped before a byte left"
	stoppedSent    situation = "the run was stopped after a byte had left"
	timedOut       situation = "no whole answer within the tool's timeout"
	connectionLost situation = "the connection ended before there was an answer"
	bodyCut        situation = "the answer ended in the middle"
	bodyTooLarge   situation = "the answer is larger than the tool's maxBody"
	redirected     situation = "the provider redirects"
	gatewayLost    situation = "the function that makes the calls ended without an answer"
)

// After a whole answer.
const (
	limitedUntil  situation = "429, or 503 with a deadline"
	limited       situation = "429 without a usable deadline"
	renewed       situation = "401 or 403, and the credential has changed since"
	unread        situation = "401 or 403, and the credential cannot be read again now"
	unauthorized  situation = "401"
	forbidden     situation = "403"
	stalled       situation = "408"
	tooEarly      situation = "425"
	unimplemented situation = "501"
	badVersion    situation = "505"
	otherServer   situation = "any other 5xx"
	absentStatus  situation = "a status that fails, other than 401, for which the tool's `missing` is true"
	tooMany       situation = "413 to a batch, or an answer for which the batch's `tooLarge` is true"
	otherClient   situation = "any other 4xx"
	moved         situation = "300, 304 and other 3xx that name no address"
	unheardOf     situation = "a status that HTTP does not know"
	result        situation = "2xx"
	absent        situation = "2xx for which the tool's `missing` is true"
	failure       situation = "2xx for which the tool's `fail` is true"
	unreadable    situation = "2xx with a body that is not the JSON that it says it is"
	badResult     situation = "2xx that `missing`, `fail` or `result` do not fit, or with a number that cannot be carried exactly"
)

// charge is what an attempt costs.
type charge string

const (
	free    charge = ""
	attempt charge = "an attempt"
	money   charge = "the tool's cost"
	both    charge = "the tool's cost, an attempt"
)

// signal is what an exchange tells the pacer about the provider's scope.
type signal string

const (
	silent  signal = ""
	success signal = "it works"
	slow    signal = "it is slow"
	until   signal = "held until then"
	backoff signal = "held for the cooldown, doubled each time"
)

// ofStatus stands for the code HTTP_<status>.
const ofStatus = "HTTP_<status>"

// verdict is what a situation means: for a call that may be repeated and for one that may not, for its attempts and
// its cost, for the pacer, and for the reader.
type verdict struct {
	on               situation
	code             string // empty: no error
	repeatable, once call.Outcome
	charges          charge
	tells            signal
	remedy           string
}

// verdicts is the one place that says what an answer or a failure means. docs/errors.md shows it as it stands here.
//
// What can be proved not to have been sent charges no attempt (T1), except where a service has answered that it cannot
// help (T6). What may have been executed is only repeated where that does no harm (T2).
var verdicts = []verdict{
	{noTool, "UNKNOWN_TOOL", call.Failed, call.Failed, free, silent, ""},
	{badInput, "BAD_INPUT", call.Failed, call.Failed, free, silent, ""},
	{noSecret, "SECRET_MISSING", call.Failed, call.Failed, free, silent, ""},
	{secretRefused, "SECRET_UNAVAILABLE", call.Retry, call.Retry, attempt, silent, ""},
	{secretSilent, "SECRET_UNAVAILABLE", call.Retry, call.Retry, free, silent, ""},
	{clientRefused, "AUTH_FAILED", call.Failed, call.Failed, free, silent, "check clientID, secret and scopes"},
	{tokenRefused, "AUTH_UNAVAILABLE", call.Retry, call.Retry, attempt, silent, ""},
	{tokenSilent, "AUTH_UNAVAILABLE", call.Retry, call.Retry, free, silent, ""},
	{egressDenied, "EGRESS_DENIED", call.Failed, call.Failed, free, silent, ""},
	{notSent, "NOT_SENT", call.Retry, call.Retry, free, silent, ""},
	{stoppedUnsent, "CANCELLED", call.Retry, call.Retry, free, silent, ""},

	{stoppedSent, "CANCELLED", call.Retry, call.Unknown, attempt, silent, ""},
	{timedOut, "TIMEOUT", call.Retry, call.Unknown, attempt, slow, ""},
	{connectionLost, "CONNECTION_LOST", call.Retry, call.Unknown, attempt, silent, ""},
	{bodyCut, "BODY_CUT", call.Retry, call.Unknown, attempt, silent, ""},
	{bodyTooLarge, "BODY_TOO_LARGE", call.Failed, call.Failed, free, success, "raise the tool's maxBody if such answers are expected"},
	{redirected, "REDIRECT", call.Failed, call.Failed, free, success, ""},
	{gatewayLost, "GATEWAY_LOST", call.Retry, call.Unknown, attempt, silent, ""},

	{limitedUntil, ofStatus, call.Held, call.Held, free, until, ""},
	{limited, ofStatus, call.Held, call.Held, free, backoff, ""},
	{renewed, ofStatus, call.Held, call.Held, free, success, ""},
	{unread, ofStatus, call.Held, call.Held, free, success, ""},
	{unauthorized, ofStatus, call.Failed, call.Failed, free, success, "check the provider's credential"},
	{forbidden, ofStatus, call.Failed, call.Failed, free, success, "check what the provider's credential is allowed to do"},
	{stalled, ofStatus, call.Retry, call.Unknown, attempt, success, ""},
	{tooEarly, ofStatus, call.Retry, call.Retry, attempt, success, ""}, // the request was not processed (RFC 8470)
	{absentStatus, "", call.Missing, call.Missing, free, success, ""},
	{tooMany, ofStatus, call.Failed, call.Failed, free, success, ""},
	{otherClient, ofStatus, call.Failed, call.Failed, free, success, ""},
	{unimplemented, ofStatus, call.Failed, call.Failed, free, silent, "the provider does not support the tool's method"},
	{badVersion, ofStatus, call.Failed, call.Failed, free, silent, ""},
	{otherServer, ofStatus, call.Retry, call.Unknown, attempt, silent, ""},
	{moved, ofStatus, call.Failed, call.Failed, free, success, "redirects are not followed; change the provider's url or the tool's path"},
	{unheardOf, ofStatus, call.Retry, call.Unknown, attempt, silent, ""},

	{result, "", call.Result, call.Result, money, success, ""},
	{absent, "", call.Missing, call.Missing, money, success, ""},
	{failure, "FAILED_ANSWER", call.Failed, call.Failed, money, success, ""},
	{unreadable, "BROKEN_ANSWER", call.Retry, call.Unknown, both, success, ""},
	{badResult, "BAD_RESULT", call.Failed, call.Failed, money, success, ""},
}

var verdictOn = func() map[situation]verdict {
	m := make(map[situation]verdict, len(verdicts))
	for _, v := range verdicts {
		m[v.on] = v
	}
	return m
}()

// answer is what the caller gets.
func (v verdict) answer(j *job, seen sighting) call.Answer {
	a := call.Answer{
		Outcome: v.once, Value: seen.value, Until: seen.until, Dispatched: seen.sent, Status: seen.status,
		Charged: v.charges == attempt || v.charges == both,
	}
	if j.repeatable() {
		a.Outcome = v.repeatable
	}
	if v.charges == money || v.charges == both {
		a.CostMicros = j.tool.CostMicros
	}
	a.Members = seen.answers(j)
	a.Split = j.many() > 1 && (v.on == tooMany || v.on == bodyTooLarge && j.tool.Idempotent)
	if v.code == "" {
		return a
	}
	a.Error = &call.Error{Code: v.code, Message: seen.message, Status: seen.status, Attempt: j.Number + 1, Dispatched: seen.sent}
	if v.code == ofStatus {
		a.Error.Code = codeOf(seen.status)
	}
	if a.Outcome == call.Held {
		a.Why = call.Why{Reason: v.holds(), Code: a.Error.Code}
	}
	if v.remedy != "" {
		a.Error.Message += "; " + v.remedy
	}
	if !seen.sent && j.Number > 0 { // what is said of this attempt is not said of the call (T1)
		a.Error.Message += "; earlier attempts may have arrived"
	}
	if a.Outcome == call.Unknown { // what was seen stays in the message (T2)
		a.Error.Code = call.OutcomeUnknown
		a.Error.Message += "; the call may have been executed, and its tool is neither idempotent nor fenced"
	}
	return a
}

func codeOf(status int) string { return fmt.Sprintf("HTTP_%d", status) }

// holds is what a call waits for that is held.
func (v verdict) holds() call.Reason {
	switch v.tells {
	case until:
		return call.RetryAfter
	case backoff:
		return call.Cooldown
	}
	return call.Credential
}

// observation is what the pacer gets; nil: the exchange says nothing about its scope.
func (v verdict) observation(j *job, seen sighting) *pacer.Observation {
	switch v.tells {
	case success:
		return &pacer.Observation{}
	case slow:
		return &pacer.Observation{Slow: true}
	case until:
		return &pacer.Observation{Limited: true, Status: seen.status, Deadline: seen.until}
	case backoff:
		return &pacer.Observation{Limited: true, Status: seen.status, Cooldown: j.tool.Provider.Cooldown}
	}
	return nil
}

// Lost is the answer of an attempt that was handed to a gateway in another process, which ended without saying what
// became of it.
func Lost(c *mapspec.Catalogue, a call.Attempt, message string) call.Answer {
	j := &job{Attempt: a, tool: c.Tools[a.Tool]}
	return verdictOn[gatewayLost].answer(j, sighting{sent: true, message: message})
}

// conclude is the answer of an attempt that came to this without an exchange.
func (s situation) conclude(j *job, message string) *call.Answer {
	a := verdictOn[s].answer(j, sighting{message: message})
	return &a
}
