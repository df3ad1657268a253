package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Control is what people ask of a run: one small item that whoever works on the run looks at about once a second. It
// says what is wanted; the record says what has come of it.
type Control struct {
	V      int    `json:"v"`
	Cancel *Order `json:"cancel,omitempty"`
	Pause  *Order `json:"pause,omitempty"`
	Retry  *Retry `json:"retry,omitempty"` // with Pause: until its failed rows are ready to be run again
	// Extend is the last extension that was asked for; whether it is done, the record says.
	Extend *Extend `json:"extend,omitempty"`
	Raised Budget  `json:"raised,omitzero"` // instead of the map's budget, where it says something

	version int64
}

// Order is a request that stands until it is withdrawn.
type Order struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Retry says how failed rows are run again.
type Retry struct {
	Unknown string          `json:"unknown,omitempty"` // what is done with calls of which nobody knows whether they were executed
	Value   json.RawMessage `json:"value,omitempty"`
}

// Budget bounds what a run may spend. Zero is no bound.
type Budget struct {
	Calls      int64 `json:"calls,omitempty"`      // dispatches
	CostMicros int64 `json:"costMicros,omitempty"` // millionths of the money unit
}

// LoadControl reads what is asked of a run; nothing, if nobody has asked for anything yet.
func LoadControl(ctx context.Context, st *store.Store, id string) (*Control, error) {
	item, err := st.Table.Get(ctx, controlKey(id))
	if errors.Is(err, table.ErrNotFound) {
		return &Control{}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Control{version: item.Version}
	if err := json.Unmarshal(item.Data, c); err != nil {
		return nil, fmt.Errorf("control of run %s: %w", id, err)
	}
	return c, nil
}

// Save replaces it; table.ErrConflict if somebody else has asked for something since it was loaded.
func (c *Control) Save(ctx context.Context, st *store.Store, id string) error {
	c.V = 1
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cond := table.VersionIs(c.version)
	if c.version == 0 {
		cond = table.Absent()
	}
	err = st.Table.Put(ctx, table.Item{Key: controlKey(id), Version: c.version + 1, Data: b}, cond)
	if err == nil {
		c.version++
	}
	return err
}

// controlTries is how often a change is tried again when somebody else asks for something at the same moment.
const controlTries = 10

// Ask changes what is asked of a run. The change may be made more than once; if it returns false nothing is written.
func Ask(ctx context.Context, st *store.Store, id string, change func(*Control) bool) (*Control, error) {
	for try := 1; ; try++ {
		c, err := LoadControl(ctx, st, id)
		if err != nil || !change(c) {
			return c, err
		}
		if err = c.Save(ctx, st, id); err == nil || !errors.Is(err, table.ErrConflict) || try == controlTries {
			return c, err
		}
	}
}

// Halts reports whether the run is not to go on for now.
func (c *Control) Halts() bool { return c.Cancel != nil || c.Pause != nil }

// Retries reports whether the run is paused only until its failed rows are ready to be run again.
func (c *Control) Retries() bool { return c.Retry != nil && c.Cancel == nil }

// Wanted is what is wanted of a run, and not done yet: extend, cancel, retry, resume or pause; empty: nothing. A run that is let go on
// is for a moment paused still, and nothing keeps it.
func (c *Control) Wanted(r *Run) string {
	switch {
	case c.Extends(r):
		return "extend"
	case r.Status.Ended():
	case c.Cancel != nil:
		return "cancel"
	case c.Retries():
		return "retry"
	case c.Pause == nil && r.Status == Paused:
		return "resume"
	case c.Pause != nil && r.Status != Paused:
		return "pause"
	}
	return ""
}

// Raise puts a budget in the place of the map's, as far as it says something, and reports whether that changes anything.
func (c *Control) Raise(b Budget) bool {
	before := c.Raised
	if b.Calls > 0 {
		c.Raised.Calls = b.Calls
	}
	if b.CostMicros > 0 {
		c.Raised.CostMicros = b.CostMicros
	}
	return c.Raised != before
}
