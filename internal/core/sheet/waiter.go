package sheet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// WaiterState is how a waiter stands.
type WaiterState string

// The states. All but the first are final, and whichever comes first by compare-and-swap is what happened.
const (
	WaiterOpen     WaiterState = "open"
	WaiterAnswered WaiterState = "answered"
	WaiterExpired  WaiterState = "expired"
	WaiterClosed   WaiterState = "closed" // nobody waits any more: the cell failed before an answer came
)

// Waiter stands under the key of an event for one row that waits for it. It is the one place where it is decided what
// becomes of the wait: an answer, or its end in time.
type Waiter struct {
	V          int             `json:"v"`
	Key        string          `json:"key"`
	Run        string          `json:"run"`
	Shard      int             `json:"shard"`
	Row        int64           `json:"row"` // ordinal
	Index      int64           `json:"index"`
	Column     int             `json:"column"`
	Step       int             `json:"step"`
	Name       string          `json:"name"` // of the column
	Until      time.Time       `json:"until"`
	Open       bool            `json:"open,omitempty"` // it can be answered after Until, too
	State      WaiterState     `json:"state"`
	Value      json.RawMessage `json:"value,omitempty"`
	AnsweredAt time.Time       `json:"answeredAt,omitzero"`

	version int64
}

// settledFor is how long a waiter is kept after its end, so that an answer that is delivered again, or too late, is told
// so and is not taken for one that nobody ever waited for.
const settledFor = 30 * 24 * time.Hour

func eventPart(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "event/" + hex.EncodeToString(sum[:16])
}

func (w *Waiter) key() table.Key {
	return table.Key{Part: eventPart(w.Key), Sort: fmt.Sprintf("%s/%012d/%04d/%06d", w.Run, w.Row, w.Column, w.Step)}
}

// Letter calls the waiter's row back.
func (w *Waiter) Letter() *Letter {
	l := &Letter{Row: w.Row, Column: w.Column, Step: w.Step}
	if !w.Open {
		l.Wakes = w.Until
	}
	return l
}

// ErrOlder: the place waits anew by now, and this wait is not the one that counts.
var ErrOlder = errors.New("the row waits anew")

// Register makes the waiter known under its key, or finds that it is: then w becomes what is stored. What is stored of an
// earlier wait of the same place, of a row that is run again, gives way. It is safe to repeat, also after an error that
// leaves open whether it was written. Fresh says that it has probably not been registered yet, which saves a read.
func (w *Waiter) Register(ctx context.Context, st *store.Store, fresh bool) error {
	w.V, w.State = 1, WaiterOpen
	if fresh {
		if err := w.save(ctx, st, 1, table.Absent()); !errors.Is(err, table.ErrConflict) {
			return err
		}
	}
	stored := *w
	switch err := stored.Load(ctx, st); {
	case errors.Is(err, table.ErrNotFound):
		return w.save(ctx, st, 1, table.Absent())
	case err != nil:
		return err
	case stored.Until.Before(w.Until):
		return w.save(ctx, st, stored.version+1, table.VersionIs(stored.version))
	case stored.Until.After(w.Until):
		return fmt.Errorf("%w: %q, until %s", ErrOlder, w.Key, stored.Until)
	}
	*w = stored
	return nil
}

// Load reads the waiter again; table.ErrNotFound if it is not registered.
func (w *Waiter) Load(ctx context.Context, st *store.Store) error {
	b, version, err := st.Load(ctx, w.key())
	if err != nil {
		return err
	}
	return w.decode(b, version)
}

func (w *Waiter) decode(b []byte, version int64) error {
	b, err := frame.Open(b)
	if err != nil {
		return fmt.Errorf("waiter for %q: %w", w.Key, err)
	}
	var stored Waiter
	if err := json.Unmarshal(b, &stored); err != nil {
		return fmt.Errorf("waiter for %q: %w", w.Key, err)
	}
	if stored.State == WaiterAnswered && stored.Value == nil {
		stored.Value = json.RawMessage("null")
	}
	*w, w.version = stored, version
	return nil
}

// Settle ends the wait, if nothing has ended it before, and reports whether it did. Whatever has ended it is what w says
// afterwards. After an error it is open whether the wait has ended: Settle again.
func (w *Waiter) Settle(ctx context.Context, st *store.Store, state WaiterState, v json.RawMessage, now time.Time) (bool, error) {
	for w.State == WaiterOpen {
		settled := *w
		settled.State, settled.Value = state, v
		if state == WaiterAnswered {
			settled.AnsweredAt = now.UTC()
		}
		err := settled.save(ctx, st, w.version+1, table.VersionIs(w.version))
		if err == nil {
			*w = settled
			return true, nil
		}
		if loadErr := w.Load(ctx, st); loadErr != nil {
			return false, errors.Join(err, loadErr)
		}
		if w.State == WaiterOpen && !errors.Is(err, table.ErrConflict) {
			return false, err
		}
	}
	return false, nil
}

func (w *Waiter) save(ctx context.Context, st *store.Store, version int64, cond table.If) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	e := store.Entry{Key: w.key(), Version: version, Value: frame.SealFast(b), Expires: w.expires()}
	if err := st.SaveEntry(ctx, e, cond); err != nil {
		return fmt.Errorf("waiter for %q: %w", w.Key, err)
	}
	w.version = version
	return nil
}

// expires is when the store may forget the waiter; zero: an operator may answer whenever it suits.
func (w *Waiter) expires() time.Time {
	switch {
	case w.State == WaiterOpen && w.Open:
		return time.Time{}
	case w.AnsweredAt.After(w.Until):
		return w.AnsweredAt.Add(settledFor)
	}
	return w.Until.Add(settledFor)
}

// Waiters yields who waits, or has waited, for a key; of one run, if it is named.
func Waiters(ctx context.Context, st *store.Store, key, run string) iter.Seq2[*Waiter, error] {
	return func(yield func(*Waiter, error) bool) {
		prefix := ""
		if run != "" {
			prefix = run + "/"
		}
		for item, err := range st.Table.Query(ctx, table.Prefix(eventPart(key), prefix)) {
			w := &Waiter{Key: key}
			if err == nil {
				var b []byte
				if b, err = st.Open(ctx, item); err == nil {
					err = w.decode(b, item.Version)
				}
			}
			if err == nil && w.Key != key {
				continue // another key of the same digest
			}
			if !yield(w, err) || err != nil {
				return
			}
		}
	}
}
