package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/value"
)

// An attempt of a tool with `batch` is one request for many calls. What the exchange comes to holds for all of them;
// where the provider has answered them one by one, each part is read as if it were the body of its own answer.

// many is how many calls the attempt is for.
func (j *job) many() int { return max(len(j.Inputs), 1) }

// decodeInputs reads and checks the inputs of an attempt.
func decodeInputs(tool *mapspec.Tool, a call.Attempt) ([]map[string]any, error) {
	raws := a.Inputs
	switch {
	case len(raws) == 0:
		raws = []json.RawMessage{a.Input}
	case tool.Batch == nil:
		return nil, fmt.Errorf("the tool %s takes one call in a request, not %d", tool.Name, len(raws))
	}
	inputs := make([]map[string]any, len(raws))
	for i, raw := range raws {
		in, err := decodeInput(raw)
		if err == nil {
			in, err = tool.CheckInput(in)
		}
		if err != nil {
			return nil, err
		}
		inputs[i] = in
	}
	return inputs, nil
}

// request builds the attempt's request.
func (j *job) request() (*mapspec.Request, error) {
	if j.tool.Batch != nil {
		return j.tool.RequestOf(j.inputs)
	}
	return j.tool.Request(j.inputs[0])
}

// oversize reports whether an answer asks for fewer calls at once. A single call is never too many.
func oversize(j *job, res *Response) bool {
	if j.tool.Batch == nil || j.many() == 1 {
		return false
	}
	if res.Status == http.StatusRequestEntityTooLarge {
		return true
	}
	return j.tool.Batch.TooLarge != nil && j.tool.TooLarge(res.Status, headers(res.Header), lenient(res), j.inputs)
}

// lenient is a body as expressions see it, also where it is not what its type says.
func lenient(res *Response) any {
	body, err := decodeBody(res)
	if err != nil {
		return string(res.Body)
	}
	return body
}

// divided reads an answer to a batch part by part.
func divided(j *job, res *Response, body any) sighting {
	whole := sighting{situation: result, sent: true, status: res.Status}
	parts, err := j.tool.Parts(res.Status, headers(res.Header), body, j.inputs)
	if err != nil {
		whole.situation, whole.message = badResult, err.Error()
		return whole
	}
	for i, part := range parts {
		whole.members = append(whole.members, interpreted(j, partOf(res, part), part, j.inputs[i]))
	}
	if len(j.Inputs) == 0 { // a call that travels alone
		return whole.members[0]
	}
	return whole
}

// partOf is the answer that a part would be by itself: what an excerpt shows to one row is nothing of another's.
func partOf(res *Response, part any) *Response {
	b, err := value.Encode(part)
	if err != nil {
		b = nil
	}
	return &Response{Status: res.Status, Header: res.Header, Body: b}
}

// answers are what the members get. The request is paid for once, and that is said of the whole.
func (s sighting) answers(j *job) []call.Answer {
	if s.members == nil {
		return nil
	}
	list := make([]call.Answer, len(s.members))
	for i, m := range s.members {
		list[i] = verdictOn[m.situation].answer(j, m)
		list[i].CostMicros = 0
	}
	return list
}

// apart marks the answer of a batch of which fewer calls at once may come to something else.
func (j *job) apart(a *call.Answer) *call.Answer {
	a.Split = j.many() > 1
	return a
}
