package run

import (
	"context"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// intent is the note in the journal that a call is about to be dispatched. A call that must not be repeated is noted as
// intended (T8): if the process dies before the answer is saved, the note is what is left of it. Its outcome is unknown
// then, and it is not paid for a second time. A call that may only be repeated together with those that it was sent with
// is noted with them (bound.go).
type intent struct {
	pages *pages
	page  *openPage
	entry sheet.Entry // place and cursor of the call
}

// intend makes the notes of units durable, together.
func intend(ctx context.Context, units []*unit) error {
	var last sheet.Ticket
	for _, u := range units {
		first := u.turns[0]
		if first.intent == nil {
			continue
		}
		note := u.intended
		if binds(first.tool) {
			note = u.bind
		}
		ticket, err := note(ctx)
		if err != nil {
			return err
		}
		if ticket != (sheet.Ticket{}) {
			last = ticket
		}
	}
	return last.Wait(ctx) // groups are committed in order
}

// intended notes that the unit's calls are about to be dispatched and must not be again.
func (u *unit) intended(ctx context.Context) (last sheet.Ticket, err error) {
	for _, t := range u.turns {
		e := t.intent.entry
		e.Kind, e.At = sheet.Intended, time.Now().UnixMilli()
		if len(u.turns) > 1 {
			e.Batch = &call.Batch{ID: u.asked.RequestID, Size: len(u.turns)}
		}
		if last, err = t.intent.note(ctx, e); err != nil {
			return last, err
		}
	}
	return last, nil
}

func (in *intent) note(ctx context.Context, e sheet.Entry) (sheet.Ticket, error) {
	return in.pages.append(ctx, in.page, &e)
}

// withdraw takes the notes of calls back that were provably not dispatched. Nobody waits for it to be durable: the
// worst that can come of it is a call whose outcome is called unknown although it was never made.
func withdraw(ctx context.Context, u *unit) {
	for _, t := range u.turns {
		if t.intent != nil && t.bound == nil {
			e := t.intent.entry
			e.Kind = sheet.Tried
			_, _ = t.intent.note(ctx, e) // a failure closes the journal, and everybody hears of it
		}
	}
}

// diedWith is the end of a call that was intended, and perhaps made, by a process that died.
func diedWith(q query, c *sheet.Cursor) *call.Error {
	d := call.Dispatch{Tool: q.tool.Name, Request: q.id.Request(c.Refused), Attempt: c.Next}
	if c.Batch != nil {
		d.Request = c.Batch.ID
	}
	if c.At != 0 {
		d.At = time.UnixMilli(c.At).UTC()
	}
	e := call.Error{Code: call.OutcomeUnknown, Message: "the call may have been made just before the process ended, " +
		"and its tool does not allow repeating it; see whether the provider has it"}
	return e.Of(d)
}
