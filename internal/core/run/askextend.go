package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// ErrOtherSource: the key of an extension has named another source before.
var ErrOtherSource = errors.New("has been extended under this key by another source")

// AskExtend is Extend where others do the work: it notes what is asked, and the next execution begins with it. The source lies
// in the blob store already. Until its rows are sealed the run is as it was: also its table can be fetched. Asking again under
// the same key changes nothing, unless what came of it was a refusal: then it is tried again. Errors: ErrAtWork; ErrNoInput;
// ErrOtherSource; sheet.ErrNoRun.
func AskExtend(ctx context.Context, st *store.Store, id, key string, more sheet.More) (*sheet.Run, error) {
	var r *sheet.Run
	var refused error
	_, err := sheet.Ask(ctx, st, id, func(c *sheet.Control) bool {
		var again bool
		if r, refused = sheet.Load(ctx, st, id); refused == nil { // after what is asked: it says what of that is done
			again, refused = asksAgain(c, r, key, more)
		}
		if refused != nil || again {
			return false
		}
		c.Cancel, c.Extend = nil, more.Ask(r, key, time.Now())
		return true
	})
	return r, errors.Join(refused, err)
}

// CanExtend refuses what AskExtend would refuse, and writes nothing.
func CanExtend(ctx context.Context, st *store.Store, id, key string, more sheet.More) error {
	r, asked, err := wanted(ctx, st, id)
	if err == nil {
		_, err = asksAgain(asked, r, key, more)
	}
	return err
}

// asksAgain reports whether this very extension was asked for before, and refuses one that is not possible now.
func asksAgain(c *sheet.Control, r *sheet.Run, key string, more sheet.More) (bool, error) {
	last := c.Extend
	switch {
	case last == nil || last.Key != key:
	case last.More != more:
		return false, fmt.Errorf("run %s %w; choose another key", r.ID, ErrOtherSource)
	case c.Extends(r) || r.Extension.Error == "":
		return true, nil
	}
	if c.Retries() {
		return false, fmt.Errorf("run %s %w: %s; %s when that is done", r.ID, ErrAtWork, retrying, canExtend)
	}
	return false, atRest(r, c, canExtend)
}

// AskedExtend carries out what AskExtend has noted; where nothing is noted, it does nothing. A source that is refused leaves the
// run as it was, and its record says why. Dying anywhere and doing it again comes to the same, and so does doing it twice at once.
func AskedExtend(ctx context.Context, st *store.Store, id string) error {
	began := time.Now()
	asked, err := sheet.LoadControl(ctx, st, id)
	if err != nil || asked.Extend == nil {
		return err
	}
	r, err := sheet.LoadRecord(ctx, st, id) // after what is asked
	if err != nil || !asked.Extends(r) {
		return err
	}
	job, err := LoadJob(ctx, st, id)
	if err != nil {
		return err
	}
	told := sheet.Extension{Number: asked.Extend.Number, At: began.UTC()}
	if r := job.Run; !r.Status.Ended() && r.Status != sheet.Paused {
		told.Error = "the run went on at the same moment; extend it again when it has ended, or is paused"
		return decide(ctx, st, id, told)
	}
	sealed, err := job.extend(ctx, st, asked.Extend, &told)
	switch {
	case err != nil && !Permanent(err):
		return err
	case err != nil:
		told.Error = err.Error()
		return decide(ctx, st, id, told)
	case told.Rows == 0:
		return decide(ctx, st, id, told)
	}
	return adopt(ctx, st, job.Map, job.Run, sealed, adoption{told: told, used: job.used(st), planMs: time.Since(began).Milliseconds()})
}

// extend seals what the source has and the run has not. Its errors are Permanent, or may pass.
func (j *Job) extend(ctx context.Context, st *store.Store, by *sheet.Extend, told *sheet.Extension) (intake.Sealed, error) {
	src, err := openObject(ctx, st, j, by.More)
	if err != nil {
		return intake.Sealed{}, err
	}
	defer src.Close()
	j.Map.Vars = j.Run.Vars
	if last := j.Run.Extension; last != nil && last.Error != "" { // of what was refused, something may have been sealed
		if err := intake.Forget(ctx, st, j.Run.ID, j.Run.Sealed, strconv.Itoa(last.Number)); err != nil {
			return intake.Sealed{}, err
		}
	}
	sealed, some, err := extendedBy(ctx, st, j.Run, j.Map, src.Source, intake.SealOptions{Name: strconv.Itoa(by.Number)})
	told.Rows, told.Duplicates = some.Rows, some.Duplicates
	return sealed, src.judge(err)
}

// RefuseExtend ends an extension that was asked for and is not done, and says why; where there is none, it does nothing.
func RefuseExtend(ctx context.Context, st *store.Store, id, why string) error {
	r, asked, err := wanted(ctx, st, id)
	if err != nil || !asked.Extends(r) {
		return err
	}
	return decide(ctx, st, id, sheet.Extension{Number: asked.Extend.Number, At: time.Now().UTC(), Error: why})
}

// decide makes the record say what has come of an extension that leaves the run as it was, unless it says so already. The
// execution that was to work on it is counted: the next one has another name.
func decide(ctx context.Context, st *store.Store, id string, told sheet.Extension) error {
	return change(ctx, st, id, func(r *sheet.Run) {
		if r.Extension != nil && r.Extension.Number >= told.Number {
			return
		}
		r.Continued++
		told.Execution = r.Execution()
		r.Extension = &told
	})
}
