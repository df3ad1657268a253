package call

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// Place is where a call stands in its run.
type Place struct {
	Row    int64 `json:"r"` // ordinal
	Column int   `json:"c"`
	Step   int   `json:"p,omitempty"`
}

// Compare orders places as the rows of a table and the columns of a map are.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Row, q.Row), cmp.Compare(p.Column, q.Column), cmp.Compare(p.Step, q.Step))
}

// Batch binds a call to the request in which it was sent together with others. Where that request may have arrived, and
// its provider knows it by its fence alone, it is sent again as it was, or not at all (T2).
type Batch struct {
	ID      string  `json:"id"` // of the request: its fence, or its request id where the tool has none
	Leader  Place   `json:"l"`  // the first call in it
	Size    int     `json:"n"`
	Members []Place `json:"m,omitempty"` // all of them in order, kept with the first
}

// Together is the one attempt of several calls of a tool, in this order. Its request id and its fence follow from theirs:
// the same calls together again are the same request.
func Together(calls []Attempt) Attempt {
	if len(calls) == 1 {
		return calls[0]
	}
	a := Attempt{Tool: calls[0].Tool}
	requests, fences := make([]string, len(calls)), make([]string, len(calls))
	for i, c := range calls {
		a.Inputs = append(a.Inputs, c.Input)
		a.Number, a.Retry = max(a.Number, c.Number), a.Retry || c.Retry
		requests[i], fences[i] = c.RequestID, c.Fence
	}
	a.RequestID, a.Fence = joined("request", requests), joined("fence", fences)
	return a
}

// joined is an id that stands for others, in their order.
func joined(what string, ids []string) string {
	h := sha256.New()
	h.Write([]byte("batch/" + what))
	for _, id := range ids {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(id)))
		h.Write(n[:])
		h.Write([]byte(id))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// Of is what the answer to a batch of n says to its i-th call. What the request costs is said of the whole.
func (a Answer) Of(i, n int) Answer {
	if n == 1 {
		return a
	}
	m := a
	if a.Outcome == Result {
		m = Answer{Outcome: Failed, Dispatched: a.Dispatched, Status: a.Status,
			Error: &Error{Code: "BAD_RESULT", Message: "the gateway's answers cannot be told apart", Status: a.Status, Dispatched: a.Dispatched}}
		if len(a.Members) == n {
			m = a.Members[i]
		}
		m.Scope, m.NextFree, m.Why = a.Scope, a.NextFree, a.Why
	}
	m.Members, m.CostMicros = nil, 0
	return m
}
