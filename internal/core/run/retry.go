package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// Failed rows are run again in three steps, each of which may be repeated: the run is paused, so that nobody works on it;
// shard by shard, its failed rows are reopened; then it goes on. A process that dies in between leaves a paused run, which
// can be retried again, or continued with the rows that were reopened by then.

// Unknown says what is done with a failed row of which nobody knows whether its call was executed (OUTCOME_UNKNOWN).
type Unknown string

// The ways. Without one, such a row stays as it is.
const (
	LeaveUnknown  Unknown = ""
	RepeatUnknown Unknown = "repeat" // the call is made again, although it may have been executed
	AcceptUnknown Unknown = "accept" // the call is taken for executed, with a value that the user gives
)

// RetryOptions of Retry; the zero RetryOptions leave unknown outcomes alone.
type RetryOptions struct {
	Unknown Unknown
	Value   json.RawMessage // AcceptUnknown: what the column takes; nil is null
}

// Retried is what Retry has done.
type Retried struct {
	Rows    int64 // failed rows that are run again
	Unknown int64 // failed rows that stay as they are, because the outcome of their call is unknown
}

// Errors of Retry, besides those of the store.
var (
	ErrAtWork  = errors.New("is at work")
	ErrBadWord = errors.New("must be `repeat` or `accept`")
)

const (
	// retrying is the reason of the pause meanwhile.
	retrying = "its failed rows are made ready to be run again"
	canRetry = "its failed rows can be run again"
)

// check completes the options.
func (o RetryOptions) check() (RetryOptions, error) {
	switch o.Unknown {
	case LeaveUnknown, RepeatUnknown:
		return o, nil
	case AcceptUnknown:
	default:
		return o, fmt.Errorf("unknown outcomes %w, not %q", ErrBadWord, o.Unknown)
	}
	if o.Value == nil {
		o.Value = json.RawMessage("null")
	}
	v, err := value.Decode(o.Value)
	if err == nil {
		o.Value, err = value.Encode(v)
	}
	if err != nil {
		return o, fmt.Errorf("the value of calls with an unknown outcome is not JSON: %w", err)
	}
	return o, nil
}

// Retry makes failed rows of a run that has ended, or is paused, open again, and lets the run go on: what their earlier
// calls have brought is kept, the call that failed is made again, with all attempts before it. Rows that have completed are
// not touched. A run with rows that have not ended, because it was cancelled or has failed, goes on with them as well. Where
// no row is to be run again, nothing changes. Errors: ErrAtWork; ErrNoInput; sheet.ErrNoRun.
func Retry(ctx context.Context, p Ports, set Settings, id string, how RetryOptions) (Retried, error) {
	return retry(ctx, p, set, id, how, nil)
}

// retry keeps the note by which it was asked for, if it was, until it is done.
func retry(ctx context.Context, p Ports, set Settings, id string, how RetryOptions, asked *sheet.Retry) (Retried, error) {
	how, err := how.check()
	if err != nil {
		return Retried{}, err
	}
	job, err := LoadJob(ctx, p.Store, id)
	if err != nil {
		return Retried{}, err
	}
	control, err := sheet.LoadControl(ctx, p.Store, id)
	if err == nil {
		err = atRest(job.Run, control, canRetry)
	}
	if err != nil {
		return Retried{}, err
	}
	x := &reopener{job: job, ports: p, set: set.withDefaults(job), how: how}
	begun := job.Run.Status == sheet.Paused && job.Run.Pause != nil && job.Run.Pause.Reason == retrying
	if err := x.look(ctx); err != nil || x.told.Rows == 0 && !begun {
		return x.told, err
	}
	if err := holdStill(ctx, p.Store, id, asked); err != nil {
		return Retried{}, err
	}
	for shard, rows := range x.rows {
		if rows == 0 {
			continue
		}
		if err := x.shard(ctx, shard); err != nil {
			return Retried{}, fmt.Errorf("shard %d: %w", shard, err)
		}
	}
	return x.told, letGo(ctx, p.Store, id)
}

// AskRetry is Retry where others do the work: it pauses the run and notes what is asked, and the next execution begins with
// it. Errors: ErrEnded if no row has failed; those of Retry.
func AskRetry(ctx context.Context, st *store.Store, id string, how RetryOptions) (*sheet.Run, error) {
	how, err := how.check()
	if err != nil {
		return nil, err
	}
	r, asked, err := wanted(ctx, st, id)
	if err == nil {
		err = atRest(r, asked, canRetry)
	}
	switch {
	case err != nil:
		return nil, err
	case r.Counts.Failed == 0:
		return nil, fmt.Errorf("run %s %w (%s), and none of its rows has failed", r.ID, ErrEnded, r.Status)
	}
	if err := holdStill(ctx, st, id, &sheet.Retry{Unknown: string(how.Unknown), Value: how.Value}); err != nil {
		return nil, err
	}
	return sheet.Load(ctx, st, id)
}

// AskedRetry carries out what AskRetry has noted; where nothing is noted, it does nothing.
func AskedRetry(ctx context.Context, p Ports, set Settings, id string) error {
	asked, err := sheet.LoadControl(ctx, p.Store, id)
	if err != nil {
		return err
	}
	if !asked.Retries() {
		return letGoOn(ctx, p.Store, id, asked)
	}
	_, err = retry(ctx, p, set, id, RetryOptions{Unknown: Unknown(asked.Retry.Unknown), Value: asked.Retry.Value}, asked.Retry)
	if err != nil && !errors.Is(err, ErrAtWork) { // then it has been done, or the run was continued meanwhile
		return err
	}
	return letGo(ctx, p.Store, id) // also where no row was to be run again
}

// holdStill pauses a run that nobody works on, for a new execution.
func holdStill(ctx context.Context, st *store.Store, id string, retry *sheet.Retry) error {
	now := time.Now().UTC()
	_, err := sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		c.Cancel, c.Pause, c.Retry = nil, &sheet.Order{At: now, Reason: retrying}, retry
		return true
	})
	if err != nil {
		return err
	}
	return change(ctx, st, id, func(r *sheet.Run) {
		if r.Status == sheet.Paused && r.Pause != nil && r.Pause.Reason == retrying {
			return
		}
		reopen(r)
		anew(r)
		r.Status, r.Pause = sheet.Paused, &sheet.Pause{Reason: retrying, At: now}
	})
}

// letGo ends the pause.
func letGo(ctx context.Context, st *store.Store, id string) error {
	_, err := sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		if c.Pause == nil || c.Pause.Reason != retrying {
			return false
		}
		c.Pause, c.Retry = nil, nil
		return true
	})
	if err != nil {
		return err
	}
	return goesOn(ctx, st, id)
}

// goesOn makes the record say that the pause is over.
func goesOn(ctx context.Context, st *store.Store, id string) error {
	return change(ctx, st, id, func(r *sheet.Run) {
		if r.Status == sheet.Paused && r.Pause != nil && r.Pause.Reason == retrying {
			r.Status, r.Pause = sheet.Running, nil
		}
	})
}

// letGoOn completes the end of the pause where whoever ended it has died between its two writes.
func letGoOn(ctx context.Context, st *store.Store, id string, asked *sheet.Control) error {
	if asked.Halts() {
		return nil
	}
	r, err := sheet.LoadRecord(ctx, st, id)
	if err != nil || r.Status != sheet.Paused || r.Pause == nil || r.Pause.Reason != retrying {
		return err
	}
	return goesOn(ctx, st, id)
}

// change changes a record, also where somebody else does at the same moment.
func change(ctx context.Context, st *store.Store, id string, by func(*sheet.Run)) error {
	for try := 1; ; try++ {
		r, err := sheet.Load(ctx, st, id)
		if err != nil {
			return err
		}
		by(r)
		if err = sheet.Save(ctx, st, r); !errors.Is(err, table.ErrConflict) || try == recordTries {
			return err
		}
	}
}
