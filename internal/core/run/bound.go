package run

import (
	"context"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
)

// Calls of a fenced tool that were sent as one request are known to their provider by that request's fence alone. So
// that it executes them once, they are bound to each other before the request leaves: after a failure in which it may
// have arrived, or a crash, the same request is sent again as it was. Where that is impossible, because the answer of
// one of them is on record and those of the others are lost, the outcome of the others is unknown. A refusal sets them free.

// bind notes the unit's request with each of its calls. The first, which knows all, comes last: groups are committed in
// order, so a first that is on record means that all are, and without it nothing was dispatched.
func (u *unit) bind(ctx context.Context) (last sheet.Ticket, err error) {
	if u.turns[0].bound != nil {
		for _, t := range u.turns {
			t.shares = t.bound // noted by an earlier attempt
		}
		return last, nil
	}
	members := make([]call.Place, len(u.turns))
	for i, t := range u.turns {
		members[i] = t.place
	}
	for i := len(u.turns) - 1; i >= 0; i-- {
		t := u.turns[i]
		t.shares = &call.Batch{ID: u.asked.Fence, Leader: members[0], Size: len(members)}
		if i == 0 {
			t.shares.Members = members
		}
		e := t.intent.entry
		e.Kind, e.Batch = sheet.Tried, t.shares
		if last, err = t.intent.note(ctx, e); err != nil {
			return last, err
		}
	}
	return last, nil
}

// rejoin finds out whether a call can be sent again in the request that it is bound to. It sets the call free where
// that request was certainly not executed.
func (r *row) rejoin(ctx context.Context, q *query) (*call.Error, error) {
	b := q.at.Batch
	leader, err := r.s.pages.bond(ctx, b.Leader, b.ID)
	for i := 0; err == nil && leader.state == bonded && i < len(leader.members); i++ {
		var m bond
		if m, err = r.s.pages.bond(ctx, leader.members[i], b.ID); m.state != bonded {
			leader.state = m.state
		}
	}
	switch {
	case err != nil:
		return nil, err
	case leader.state == loose:
		q.at.Batch = nil
	case leader.state == ended:
		e := call.Error{Code: call.OutcomeUnknown, Message: "the call was sent together with others, whose answers are on record while its own was " +
			"lost with the process; sent by itself it would be another request; see whether the provider has it"}
		return e.Of(call.Dispatch{Tool: q.tool.Name, Request: b.ID, Attempt: q.at.Next}), nil
	}
	return nil, nil
}

// bond is how a call stands to a request that it may be bound to.
type bond struct {
	state   bondState
	members []call.Place
}

type bondState int

const (
	bonded bondState = iota
	loose            // it is bound to no request, or to another: the request was not executed
	ended            // it has its answer
)

func (p *pages) bond(ctx context.Context, at call.Place, id string) (bond, error) {
	page, err := p.enter(ctx, at.Row)
	if err != nil {
		return bond{}, err
	}
	defer p.leave(page)
	page.mu.Lock()
	defer page.mu.Unlock()
	row := page.state.Row(at.Row)
	if row.Status != sheet.RowOpen || row.Receipt(at.Column, at.Step) != nil {
		return bond{state: ended}, nil
	}
	c := row.Cursor(at.Column, at.Step)
	if c == nil || c.Batch == nil || c.Batch.ID != id {
		return bond{state: loose}, nil
	}
	return bond{state: bonded, members: c.Batch.Members}, nil
}
