package resolver

import (
	"context"
	"encoding/json"
	"time"
)

// OpSleep is a sleep, as records name it.
const OpSleep = "sleep"

// OpEvent is a wait for the answer to an event, as records name it.
func OpEvent(key string) string { return "event " + key }

// Record is what is known of an operation.
type Record struct {
	Op    string // which operation it is, such as "call acme.company 1a2b3c4d"
	Done  bool   // it has ended, with Value or Error
	Value json.RawMessage
	Error *Error
	Used  int // positions that it took besides its own
}

// Host carries operations out and makes them durable. An error that is a *Suspension means that the row waits; any other
// error ends the slice and wins over it (R4). Operations of different positions may be asked for at the same time.
type Host interface {
	Context() context.Context
	Row() map[string]any
	Cells() map[string]any
	Index() int64

	// Known returns what is recorded at a position; false: nothing is.
	Known(position int) (Record, bool, error)
	// Positions lists all positions at which something is recorded.
	Positions() []int
	// Call makes a tool call and records what it has come to.
	Call(position int, op, tool string, with map[string]any) (Record, error)
	// Save records how a step has ended.
	Save(position int, rec Record) error
	// Sleep returns when a sleep that is recorded at the position is over.
	Sleep(position int, op string, d time.Duration) error
	// Event waits for an answer. It takes two positions: of the notification, and of the answer.
	Event(position int, op string, e Event) (Record, error)
	// Fork runs n bodies side by side and returns when all have returned.
	Fork(n int, body func(i int))
}
