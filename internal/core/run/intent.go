package run

import (
	"context"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// intent is the note in the journal that a call which must not be repeated is about to be dispatched (T8). If the
// process dies before the answer is saved, the note is what is left of the call: its outcome is unknown then, and it
// is not paid for a second time.
type intent struct {
	pages *pages
	page  *openPage
	entry sheet.Entry // Intended; a Tried of the same call takes it back
}

// intend makes the intents of a batch durable, together.
func intend(ctx context.Context, batch []*turn) error {
	var last sheet.Ticket
	for _, t := range batch {
		if t.intent == nil {
			continue
		}
		var err error
		if last, err = t.intent.note(ctx, sheet.Intended); err != nil {
			return err
		}
	}
	return last.Wait(ctx) // groups are committed in order
}

func (in *intent) note(ctx context.Context, kind sheet.Kind) (sheet.Ticket, error) {
	e := in.entry
	e.Kind = kind
	if kind == sheet.Intended {
		e.At = time.Now().UnixMilli()
	}
	return in.pages.append(ctx, in.page, &e)
}

// withdraw takes the note of a call back that was provably not dispatched. Nobody waits for it to be durable: the
// worst that can come of it is a call whose outcome is called unknown although it was never made.
func (in *intent) withdraw(ctx context.Context) {
	if in != nil {
		_, _ = in.note(ctx, sheet.Tried) // a failure closes the journal, and everybody hears of it
	}
}

// diedWith is the end of a call that was intended, and perhaps made, by a process that died.
func diedWith(q query, c *sheet.Cursor) *call.Error {
	d := call.Dispatch{Tool: q.tool.Name, Request: q.id.Request(c.Refused), Attempt: c.Next}
	if c.At != 0 {
		d.At = time.UnixMilli(c.At).UTC()
	}
	e := call.Error{Code: "OUTCOME_UNKNOWN", Message: "the call may have been made just before the process ended, " +
		"and its tool does not allow repeating it; see whether the provider has it"}
	return e.Of(d)
}
