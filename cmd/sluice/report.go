package main

import (
	"encoding/json"
	"time"

	"sluice/internal/core/sheet"
)

// report is the object that --json prints.
type report struct {
	ID             string      `json:"id"`
	Status         string      `json:"status"`
	Total          int64       `json:"total"` // rows of the input, duplicates included
	Completed      int64       `json:"completed"`
	Failed         int64       `json:"failed"`
	Duplicates     int64       `json:"duplicates"`
	Waiting        int64       `json:"waiting"` // rows that have not ended
	Calls          calls       `json:"calls"`
	Slices         int64       `json:"slices"`
	Parks          int64       `json:"parks"`
	ResidentWaitMs int64       `json:"residentWaitMs"`
	HeldMs         int64       `json:"heldMs"`
	Cost           json.Number `json:"cost"` // in the money unit of the tools' costs
	StartedAt      *time.Time  `json:"startedAt"`
	FinishedAt     *time.Time  `json:"finishedAt"`
	Out            *string     `json:"out"`               // where the table was written; null: nowhere
	WholeAt        *time.Time  `json:"wholeAt,omitempty"` // since then every row has ended, and steps of finish are left to do
	Finish         []finished  `json:"finish,omitempty"`
	Warnings       []string    `json:"warnings,omitempty"` // steps of finish that failed
}

type calls struct {
	Logical    int64 `json:"logical"`
	Dispatched int64 `json:"dispatched"`
	Refused429 int64 `json:"refused429"`
	Reused     int64 `json:"reused"`
	Cached     int64 `json:"cached"`
}

func newReport(r *sheet.Run, out string, steps []finished) report {
	s := r.Stats
	rep := report{
		ID: r.ID, Status: string(r.Status), Total: r.Sealed.Total, Completed: r.Counts.Completed, Failed: r.Counts.Failed,
		Duplicates: r.Sealed.Duplicates, Waiting: r.Sealed.Rows - r.Counts.Ended(),
		Calls:  calls{s.Logical, s.Dispatched, s.Refused429, s.Reused, s.Cached},
		Slices: s.Slices, Parks: s.Parks, ResidentWaitMs: s.ResidentWaitMs, HeldMs: s.HeldMs,
		Cost: json.Number(sheet.Money(s.CostMicros)), StartedAt: instant(r.StartedAt), FinishedAt: instant(r.FinishedAt),
		WholeAt: instant(r.WholeAt), Finish: steps, Warnings: r.Warnings(),
	}
	if out != "" {
		rep.Out = &out
	}
	return rep
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}
