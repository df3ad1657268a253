// Package bus tells the outside what becomes of runs: events on the stack's EventBridge bus. It owns their form; they
// say how a run stands and never carry rows.
package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"sluice/internal/core/sheet"
)

// Source is the events' source.
const Source = "sluice"

// The detail types: what functions tell, and those that they listen to.
const (
	Completed = "sluice.run.completed"
	Failed    = "sluice.run.failed"
	Cancelled = "sluice.run.cancelled"
	Paused    = "sluice.run.paused"     // the run goes on only when it is told to
	Parked    = "sluice.run.parked"     // a shard of the run waits for long
	Requested = "sluice.run.requested"  // detail: a start request, as the API takes it
	Answered  = "sluice.event.answered" // detail: an answer, as the API takes it
)

// Event is something that became of a run. An event may be told more than once.
type Event struct {
	Type   string
	Detail Detail
}

// Detail is the event's body.
type Detail struct {
	Run       string       `json:"run"`
	Name      string       `json:"name"` // of the map
	Status    sheet.Status `json:"status"`
	Shard     *int         `json:"shard,omitempty"` // that waits
	WakeAt    time.Time    `json:"wakeAt,omitzero"` // until then, unless a hold ends sooner
	Rows      int64        `json:"rows"`
	Completed int64        `json:"completed"`
	Failed    int64        `json:"failed"`
	Error     string       `json:"error,omitempty"`
	Reason    string       `json:"reason,omitempty"`   // of a pause, such as a budget that is spent
	Warnings  []string     `json:"warnings,omitempty"` // steps of `finish` that failed
}

// Of is the event for a run that has ended.
func Of(r *sheet.Run) Event {
	e := Event{Type: Completed, Detail: Detail{Run: r.ID, Name: r.Name, Status: r.Status, Rows: r.Sealed.Rows,
		Completed: r.Counts.Completed, Failed: r.Counts.Failed, Error: r.Error, Warnings: r.Warnings()}}
	switch r.Status {
	case sheet.Failed:
		e.Type = Failed
	case sheet.Cancelled:
		e.Type = Cancelled
	}
	return e
}

// OfPark is the event for a shard that waits, whatever the others do.
func OfPark(r *sheet.Run, shard int, wakeAt time.Time) Event {
	e := Of(r)
	e.Type, e.Detail.Status, e.Detail.Shard, e.Detail.WakeAt = Parked, sheet.Parked, &shard, wakeAt.UTC()
	return e
}

// OfPause is the event for a run that is paused.
func OfPause(r *sheet.Run) Event {
	e := Of(r)
	if e.Type = Paused; r.Pause != nil {
		e.Detail.Reason = r.Pause.Reason
	}
	return e
}

// Announcer tells events. When it returns nil, the bus has the event.
type Announcer interface {
	Announce(ctx context.Context, e Event) error
}

// EventBridge is an Announcer.
type EventBridge struct {
	Client *eventbridge.Client
	Bus    string
}

// Announce implements Announcer.
func (b EventBridge) Announce(ctx context.Context, e Event) error {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return err
	}
	out, err := b.Client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: &b.Bus, Source: aws.String(Source), DetailType: &e.Type, Detail: aws.String(string(detail)),
	}}})
	if err != nil {
		return fmt.Errorf("event %s of run %s: %w", e.Type, e.Detail.Run, err)
	}
	if out.FailedEntryCount > 0 && len(out.Entries) > 0 {
		return fmt.Errorf("event %s of run %s: the bus refused it: %s", e.Type, e.Detail.Run, aws.ToString(out.Entries[0].ErrorCode))
	}
	return nil
}
