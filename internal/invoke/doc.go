// Package invoke carries attempts to the toolexec function: it is the call.Gateway of the cloud. It owns the message
// between the two functions, batches that fit Lambda's payload, and the question what a failed invocation says about
// the calls in it: whether they were provably not made, or may have been (T2, T4). It refuses to judge answers: that is
// the executor's business, on the other side.
package invoke

import (
	"context"

	"sluice/internal/core/call"
	"sluice/internal/core/table"
)

// Request is what toolexec is invoked with. The tools are those of the run; where there is none, those that are given.
type Request struct {
	Run      string         `json:"run"`
	Tools    *Tools         `json:"tools,omitempty"`
	Attempts []call.Attempt `json:"attempts"`
	// Permits is how permits have to be validated; PermitsChecked, or 0 for however the function does it. A function that
	// cannot do it refuses the request before it dispatches anything, as one does that does not know the field.
	Permits int `json:"permits,omitempty"`
}

// PermitsChecked: a permit is the proof of its grant, and is checked again immediately before the dispatch (H12).
const PermitsChecked = 1

// Tools is the text of a tool file.
type Tools struct {
	Name string `json:"name"` // for messages
	Text string `json:"text"`
}

// Response is what it answers: one answer per attempt, in order. Answers that would not fit the payload of a response
// lie in the blob store, under the name in Object, as the JSON of Answers; who has read them deletes them.
type Response struct {
	Answers []call.Answer `json:"answers,omitempty"`
	Object  string        `json:"object,omitempty"`
	Usage   table.Usage   `json:"usage,omitzero"`  // of the store by the invocation: permits, catalogues
	Bodies  call.BodyUse  `json:"bodies,omitzero"` // of the function's memory for answers, by the invocation
	Billed  call.Billed   `json:"billed,omitzero"` // the invocation's time
}

// Lambda takes and gives at most 6 MB per synchronous invocation (Lambda quotas, "Invocation payload"): 6,291,456 bytes.
// The margin leaves room for what the service counts besides.
const MaxPayload = 6<<20 - 64<<10

// Invoker invokes the function and waits for what it returns.
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) (Result, error)
}

// Result is an invocation that the function was started for.
type Result struct {
	Payload []byte
	Failed  bool // the function failed; Payload is the runtime's report of its error
}

// NotStartedError: the function was provably not started by this invocation.
type NotStartedError struct {
	Throttled bool // for want of concurrency or of some other capacity: it will pass
	Err       error
}

func (e *NotStartedError) Error() string { return "toolexec was not started: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *NotStartedError) Unwrap() error { return e.Err }
