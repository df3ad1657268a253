// Package api is the HTTP API of Sluice, the same on a laptop and in the cloud. It owns the form of what is asked and
// answered; it never does a run's work.
package api

import (
	"context"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/cost"
)

// View is a run as it is shown. Durations are milliseconds.
type View struct {
	Run        string       `json:"run"`
	Name       string       `json:"name"`
	Status     sheet.Status `json:"status"`
	MapName    string       `json:"mapName"`
	Input      string       `json:"input"` // name of the source
	Rows       int64        `json:"rows"`  // of the sealed input, without duplicates; 0 while staging
	Duplicates int64        `json:"duplicates"`
	Completed  int64        `json:"completed"`
	Failed     int64        `json:"failed"`
	Shards     int          `json:"shards"`
	Error      string       `json:"error,omitempty"`
	Pause      *sheet.Pause `json:"pause,omitempty"`
	CreatedAt  time.Time    `json:"createdAt"`
	StartedAt  time.Time    `json:"startedAt,omitzero"`
	FinishedAt time.Time    `json:"finishedAt,omitzero"`
	WakeAt     time.Time    `json:"wakeAt,omitzero"`    // parked: nothing happens before
	WholeAt    time.Time    `json:"wholeAt,omitzero"`   // since then its table can be fetched, and steps of `finish` are left to do
	Warnings   []string     `json:"warnings,omitempty"` // steps of `finish` that failed
	Stats      sheet.Stats  `json:"stats"`

	// Of one run, not in lists.
	Finish []Step     `json:"finish,omitempty"` // what became of the map's `finish`
	Asked  string     `json:"asked,omitempty"`  // cancel, pause, resume, retry or extend: it is wanted, and not done yet
	Holds  []run.Hold `json:"holds,omitempty"`  // what rows wait for
	Waits  *Waits     `json:"waits,omitempty"`  // how many rows wait for something else
	// Rows that a slice has taken and that are not held, as of its last checkpoint: by one that is at work, or that has ended.
	Working     int        `json:"working,omitempty"`
	Interrupted int        `json:"interrupted,omitempty"`
	Budget      *Spent     `json:"budget,omitempty"`    // of a run that has one
	Extension   *Extension `json:"extension,omitempty"` // what came of the last one that was asked for
	Bill        *cost.Bill `json:"bill,omitempty"`      // so far, at list prices
}

// Extension is what came of an extension.
type Extension struct {
	At         time.Time `json:"at"`         // when it was decided
	Rows       int64     `json:"rows"`       // new ones
	Duplicates int64     `json:"duplicates"` // that the run had already, or that came twice
	Error      string    `json:"error,omitempty"`
}

// Waits says how many rows wait for answers, or sleep.
type Waits struct {
	Answers int64 `json:"answers"`
	Asleep  int64 `json:"asleep"`
}

// Step is a step of `finish`.
type Step struct {
	sheet.FinishStep
	Link *Download `json:"link,omitempty"` // to what was published
}

// Runs is a page of a list of runs.
type Runs struct {
	Runs []View `json:"runs"`
	Next string `json:"next,omitempty"` // the `before` of the following page
}

// Download is a request that gets a table, or what was published, until it expires.
type Download struct {
	Method    string    `json:"method"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// ViewOf is the run as it is shown in a list.
func ViewOf(ctx context.Context, st *store.Store, r *sheet.Run) (View, error) {
	status, wake, err := run.Standing(ctx, st, r)
	return View{
		Run: r.ID, Name: r.Name, Status: status, MapName: r.MapFile, Input: r.Input, Rows: r.Sealed.Rows,
		Duplicates: r.Sealed.Duplicates, Completed: r.Counts.Completed, Failed: r.Counts.Failed, Shards: r.Shards, Error: r.Error,
		Pause: r.Pause, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, WakeAt: wake,
		WholeAt: r.WholeAt, Warnings: r.Warnings(), Stats: r.Stats,
	}, err
}

// DetailOf is ViewOf with what is shown of one run.
func DetailOf(ctx context.Context, st *store.Store, r *sheet.Run) (View, error) {
	v, err := ViewOf(ctx, st, r)
	if err != nil {
		return v, err
	}
	bill := cost.Of(cost.Used(r))
	v.Bill = &bill
	if x := r.Extension; x != nil {
		v.Extension = &Extension{At: x.At, Rows: x.Rows, Duplicates: x.Duplicates, Error: x.Error}
	}
	asked, err := sheet.LoadControl(ctx, st, r.ID)
	if err != nil {
		return v, err
	}
	v.Asked = asked.Wanted(r)
	if v.Budget, err = spentOf(ctx, st, r, asked); err != nil || r.Status.Ended() {
		return v, err
	}
	left, err := run.BacklogOf(ctx, st, r)
	if err != nil {
		return v, err
	}
	v.Holds, v.Working, v.Interrupted = left.Holds, left.Working, left.Interrupted
	if w := left.Waiting; w.Answers+w.Asleep > 0 {
		v.Waits = &Waits{Answers: w.Answers, Asleep: w.Asleep}
	}
	return v, nil
}
