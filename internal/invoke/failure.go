package invoke

import (
	"encoding/json"
	"errors"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
)

// failed settles a part whose invocation came to nothing. An error is for attempts that were provably not dispatched.
func (g *Gateway) failed(p *part, err error, deliver func(int, call.Answer)) error {
	var not *NotStartedError
	switch {
	case errors.As(err, &not) && not.Throttled:
		refuse(p, time.Now().Add(throttledWait), deliver) // our platform's 429, not the provider's (H15)
		return nil
	case errors.As(err, &not):
		return err
	}
	g.lost(p, "the invocation of toolexec was cut off: "+err.Error(), deliver)
	return nil
}

// functionFailed settles a part for which the function was started and failed. Errors of the function's own names come
// before anything is dispatched; of all others (it ran out of time or memory, or was killed) nobody knows.
func (g *Gateway) functionFailed(p *part, payload []byte, deliver func(int, call.Answer)) error {
	report := reported(payload)
	switch report.ErrorType {
	case "Transient":
		refuse(p, time.Now().Add(passingWait), deliver)
		return nil
	case badRequest, "RunNotFound", "RunFailed":
		return errors.New("toolexec: " + report.ErrorMessage)
	}
	message := "toolexec failed"
	if report.ErrorType != "" {
		message += " (" + report.ErrorType + ")"
	}
	g.lost(p, message, deliver)
	return nil
}

// badRequest is the name of a function's error about the request itself.
const badRequest = "BadRequest"

// report is how the runtime tells of a function's error.
type report struct {
	ErrorType    string `json:"errorType"`
	ErrorMessage string `json:"errorMessage"`
}

func reported(payload []byte) (r report) {
	_ = json.Unmarshal(payload, &r) // what cannot be read is an unknown error
	return r
}

func refuse(p *part, until time.Time, deliver func(int, call.Answer)) {
	for _, i := range p.index {
		deliver(i, call.Answer{Outcome: call.Refused, Until: until, NextFree: until, Why: call.Why{Reason: call.Platform}})
	}
}

// lost settles attempts that may have been executed, without anybody knowing what came of them (T2).
func (g *Gateway) lost(p *part, message string, deliver func(int, call.Answer)) {
	for n, i := range p.index {
		deliver(i, gateway.Lost(g.Catalogue, p.attempts[n], message))
	}
}
