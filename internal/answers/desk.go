// Package answers takes answers to events, from programs and from people: it gives them to the rows that wait, and
// wakes whoever sleeps. It also has the page on which a person answers by a link. What an answer means, and that none is
// lost, is the engine's (package run).
package answers

import (
	"context"
	"encoding/json"

	"sluice/internal/core/run"
	"sluice/internal/core/store"
)

// Bell wakes a shard that sleeps where nobody looks into its inbox. Ringing for one that is awake does no harm.
type Bell interface {
	Ring(ctx context.Context, at run.ShardOf) error
}

// Request is an answer as programs send it.
type Request struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	Run   string          `json:"run,omitempty"` // empty: whoever waits for the key
}

// Desk takes answers. Bell is nil where those who work on runs look into the inbox themselves, as on a laptop.
type Desk struct {
	Store *store.Store
	Bell  Bell
}

// Answer is run.Answer, and wakes those who have got one. After an error that is none of run's, give the answer again.
func (d *Desk) Answer(ctx context.Context, key string, v json.RawMessage, whose run.Whose) (*run.Answered, error) {
	got, err := run.Answer(ctx, d.Store, key, v, whose)
	if err != nil || d.Bell == nil {
		return got, err
	}
	for _, shard := range got.Wake {
		if err := d.Bell.Ring(ctx, shard); err != nil {
			return nil, err
		}
	}
	return got, nil
}
