package sheet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/store"
)

// Pending is a row that was admitted and has not ended. Its cells so far are in its page and the journal.
type Pending struct {
	Row   int64     `json:"r"`           // ordinal
	Index int64     `json:"i"`           // position in the source
	Input string    `json:"d"`           // digest of the input it was admitted with
	Until time.Time `json:"u,omitzero"`  // held until; zero: at work when this was written
	Scope string    `json:"s,omitempty"` // whose hold it is
	Why   call.Why  `json:"w,omitzero"`
	Spent bool      `json:"x,omitempty"` // its call has used up its resident waits
	// Unsent is since when nothing could be sent for its call; zero: that was not so.
	Unsent time.Time `json:"n,omitzero"`
}

// PendingRows are stored column by column, in the order of their rows: neighbours are alike, and what is alike is next to
// nothing once it is compressed. A shard that waits writes them with each checkpoint, a thousand at the most.
type PendingRows []Pending

// pendingColumns are as long as there are rows, or empty where no row has anything there.
type pendingColumns struct {
	Rows   []int64     `json:"r"` // less the row before
	Index  []int64     `json:"i"` // less the row
	Input  []string    `json:"d,omitempty"`
	Until  []time.Time `json:"u,omitempty"`
	Scope  []string    `json:"s,omitempty"`
	Why    []call.Why  `json:"w,omitempty"`
	Spent  []bool      `json:"x,omitempty"`
	Unsent []time.Time `json:"n,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p PendingRows) MarshalJSON() ([]byte, error) {
	rows := slices.SortedFunc(slices.Values(p), func(a, b Pending) int { return cmp.Compare(a.Row, b.Row) })
	c := pendingColumns{
		Input: column(rows, func(r Pending) string { return r.Input }),
		Until: column(rows, func(r Pending) time.Time { return r.Until }), Scope: column(rows, func(r Pending) string { return r.Scope }),
		Why:   column(rows, func(r Pending) call.Why { return r.Why }),
		Spent: column(rows, func(r Pending) bool { return r.Spent }), Unsent: column(rows, func(r Pending) time.Time { return r.Unsent }),
	}
	last := int64(0)
	for _, r := range rows {
		c.Rows, c.Index = append(c.Rows, r.Row-last), append(c.Index, r.Index-r.Row)
		last = r.Row
	}
	return json.Marshal(c)
}

func column[T comparable](rows []Pending, of func(Pending) T) []T {
	var zero T
	some, list := false, make([]T, len(rows))
	for i, r := range rows {
		list[i] = of(r)
		some = some || list[i] != zero
	}
	if !some {
		return nil
	}
	return list
}

// UnmarshalJSON implements json.Unmarshaler. It also reads what earlier versions wrote: an object for each row.
func (p *PendingRows) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, (*[]Pending)(p))
	}
	var c pendingColumns
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	n := len(c.Rows)
	for _, length := range []int{len(c.Index), cmp.Or(len(c.Input), n), cmp.Or(len(c.Until), n), cmp.Or(len(c.Scope), n), cmp.Or(len(c.Why), n), cmp.Or(len(c.Spent), n), cmp.Or(len(c.Unsent), n)} {
		if length != n {
			return fmt.Errorf("%w: %d pending rows, and a column of %d", store.ErrDamaged, n, length)
		}
	}
	*p = make([]Pending, n)
	last := int64(0)
	for i := range *p {
		last += c.Rows[i]
		(*p)[i] = Pending{Row: last, Index: last + c.Index[i], Input: at(c.Input, i), Until: at(c.Until, i), Scope: at(c.Scope, i), Why: at(c.Why, i), Spent: at(c.Spent, i), Unsent: at(c.Unsent, i)}
	}
	return nil
}

func at[T any](column []T, i int) (v T) {
	if column != nil {
		v = column[i]
	}
	return v
}
