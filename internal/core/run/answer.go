package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/link"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/value"
)

// MaxAnswer bounds the JSON of an answer, in bytes.
const MaxAnswer = 1 << 20

// Errors of answers. All but these leave open what became of the answer: give it again.
var (
	// ErrNobodyWaits: no row waits, or has waited lately, for an event of that key.
	ErrNobodyWaits = errors.New("nobody waits for this answer")
	// ErrTooLate: rows did wait, but not any more.
	ErrTooLate = errors.New("the answer comes too late")
	// ErrBadAnswer: the key or the value is not one that can be taken.
	ErrBadAnswer = errors.New("this is no answer")
)

// Whose restricts an answer to some of those who wait for its key. The zero value does not.
type Whose struct {
	Run   string
	Place *link.Place // with its Run and Key: this row alone
}

func (w Whose) means(of *sheet.Waiter) bool {
	p := w.Place
	return p == nil || p.Run == of.Run && p.Row == of.Row && p.Column == of.Column && p.Step == of.Step
}

// Answered is what an answer has come to.
type Answered struct {
	Key     string          `json:"key"`
	Taken   int             `json:"taken"`   // rows that go on with it
	Already int             `json:"already"` // rows that had an answer, which stands
	At      time.Time       `json:"at"`      // of the first answer
	Value   json.RawMessage `json:"-"`       // of the first answer
	Wake    []ShardOf       `json:"-"`       // shards with something in their inbox: who sleeps there is to be woken
}

// ShardOf names a shard of a run.
type ShardOf struct {
	Run   string
	Shard int
}

// Answer gives an answer, which is JSON, to every row that waits for the key. The first one counts (E2): a second is
// acknowledged, and changes nothing. When it returns nil the answer is durable, and whoever works on the run finds it
// in the inbox of its shard; where nobody works on it, somebody must be woken (Wake). Errors: ErrBadAnswer, ErrNobodyWaits,
// ErrTooLate; after any other, and after a crash, give the same answer again.
func Answer(ctx context.Context, st *store.Store, key string, v json.RawMessage, whose Whose) (*Answered, error) {
	v, err := checkAnswer(key, v)
	if err != nil {
		return nil, err
	}
	a := &answering{st: st, value: v, now: time.Now(), runs: map[string]bool{}, woken: map[ShardOf]bool{}, out: &Answered{Key: key}}
	for w, err := range sheet.Waiters(ctx, st, key, whose.Run) {
		if err == nil && whose.means(w) {
			err = a.give(ctx, w)
		}
		if err != nil {
			return nil, err
		}
	}
	return a.result(whose)
}

func checkAnswer(key string, v json.RawMessage) (json.RawMessage, error) {
	if err := mapspec.CheckKey(key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if len(v) > MaxAnswer {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are possible; store it elsewhere and answer with where", ErrBadAnswer, len(v), MaxAnswer)
	}
	decoded, err := value.Decode(v)
	if err == nil {
		v, err = value.Encode(decoded)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it is not JSON: %w", ErrBadAnswer, err)
	}
	return v, nil
}

// answering is one answer on its way to those who wait for it.
type answering struct {
	st    *store.Store
	value json.RawMessage
	now   time.Time
	runs  map[string]bool // whether a run that was looked at has ended
	woken map[ShardOf]bool
	late  *sheet.Waiter // one that does not wait any more
	ended string        // a run that has ended, and a row of which waited
	out   *Answered
}

// give gives the answer to one who waits. What an earlier delivery may have left undone is done again.
func (a *answering) give(ctx context.Context, w *sheet.Waiter) error {
	over, err := a.over(ctx, w.Run)
	if err != nil {
		return err
	}
	switch {
	case w.State == sheet.WaiterOpen && over:
		a.ended = w.Run
		return nil
	case w.State == sheet.WaiterOpen && !w.Open && !a.now.Before(w.Until):
		a.late = w
		return nil
	case w.State == sheet.WaiterOpen:
		if err := a.settle(ctx, w); err != nil {
			return err
		}
	case w.State == sheet.WaiterAnswered:
		a.out.Already++
	}
	if w.State != sheet.WaiterAnswered {
		a.late = w
		return nil
	}
	a.first(w)
	if over {
		return nil
	}
	if err := w.Letter().Post(ctx, a.st, w.Run, w.Shard); err != nil {
		return err
	}
	if shard := (ShardOf{w.Run, w.Shard}); !a.woken[shard] {
		a.woken[shard] = true
		a.out.Wake = append(a.out.Wake, shard)
	}
	return nil
}

// settle answers, unless somebody else was faster.
func (a *answering) settle(ctx context.Context, w *sheet.Waiter) error {
	mine, err := w.Settle(ctx, a.st, sheet.WaiterAnswered, a.value, a.now)
	switch {
	case err != nil:
		return err
	case mine:
		a.out.Taken++
	case w.State == sheet.WaiterAnswered:
		a.out.Already++
	}
	return nil
}

func (a *answering) first(w *sheet.Waiter) {
	if a.out.At.IsZero() || w.AnsweredAt.Before(a.out.At) {
		a.out.At, a.out.Value = w.AnsweredAt, w.Value
	}
}

// over reports whether the run has ended, so that nobody would take the answer.
func (a *answering) over(ctx context.Context, id string) (bool, error) {
	if over, known := a.runs[id]; known {
		return over, nil
	}
	r, err := sheet.LoadRecord(ctx, a.st, id)
	over := errors.Is(err, sheet.ErrNoRun)
	if err != nil && !over {
		return false, err
	}
	a.runs[id] = over || r.Status.Ended()
	return a.runs[id], nil
}

func (a *answering) result(whose Whose) (*Answered, error) {
	of := ""
	if whose.Run != "" {
		of = fmt.Sprintf(" in run %s", whose.Run)
	}
	switch {
	case a.out.Taken+a.out.Already > 0:
		return a.out, nil
	case a.late != nil && a.late.State == sheet.WaiterClosed:
		return nil, fmt.Errorf("%w: %q%s is not waited for any more", ErrTooLate, a.out.Key, of)
	case a.late != nil:
		return nil, fmt.Errorf("%w: %q was waited for until %s", ErrTooLate, a.out.Key, a.late.Until.Format(time.RFC3339))
	case a.ended != "":
		return nil, fmt.Errorf("%w: run %s, which waited for %q, has ended", ErrTooLate, a.ended, a.out.Key)
	}
	return nil, fmt.Errorf("%w: no row%s waits for %q", ErrNobodyWaits, of, a.out.Key)
}

// Mail reports whether a shard's inbox has something for rows that a slice would bring back.
func Mail(ctx context.Context, st *store.Store, at ShardOf) (bool, error) {
	for _, err := range sheet.Inbox(ctx, st, at.Run, at.Shard) {
		return err == nil, err
	}
	return false, nil
}
