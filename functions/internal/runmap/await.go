package runmap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/edge"
)

// Bell wakes a shard whose machine waits for a token.
type Bell interface {
	Ring(ctx context.Context, at run.ShardOf) error
}

// AwaitResult is what await returns; the machine does not read it.
type AwaitResult struct {
	Run   string `json:"run"`
	Shard int    `json:"shard"`
	Rang  bool   `json:"rang"` // there is something to do already
}

// How long the machine waits for a token at most, by the names that it knows them under: the time that a shard wakes at
// is met by waiting in steps, each no longer than what is left. A machine cannot be told the time itself: TimeoutSecondsPath
// is not for every emulator. In the last ten seconds a shard waits as if it were parked: shorter steps would cost more slices than
// they save waiting.
const (
	withinHour    = "hour"
	withinMinutes = "minutes"
	withinMoment  = "moment"
	withinSeconds = "seconds"

	hour    = time.Hour
	minutes = 5 * time.Minute
	moment  = 30 * time.Second
	seconds = 10 * time.Second
)

// tokenKept is how long a token is kept: longer than a machine waits for it.
const tokenKept = 2 * hour

// within is how long the machine may wait for a token; empty: too short to hand one out.
func within(wakeAt, now time.Time) string {
	left := wakeAt.Sub(now)
	switch {
	case wakeAt.IsZero() || left >= hour:
		return withinHour
	case left >= minutes:
		return withinMinutes
	case left >= moment:
		return withinMoment
	case left >= seconds:
		return withinSeconds
	}
	return ""
}

// await keeps the token that wakes the shard, and then looks whether something has come before: who gives an answer puts it
// into the inbox first, and then looks for a token. So whichever is later sees what the other has done (E3).
func (h *Handler) await(ctx context.Context, req Request) (any, error) {
	if req.Token == "" || req.Shard < 0 {
		return nil, &edge.BadRequest{Message: "`token` is missing, or `shard` is none"}
	}
	if err := sheet.SaveToken(ctx, h.Store, req.Run, req.Shard, req.Token, time.Now().Add(tokenKept)); err != nil {
		return nil, fmt.Errorf("token of shard %d of run %s: %w", req.Shard, req.Run, err)
	}
	at := run.ShardOf{Run: req.Run, Shard: req.Shard}
	due, err := h.due(ctx, at)
	if err != nil {
		return nil, err
	}
	if due {
		if err := h.Bell.Ring(ctx, at); err != nil {
			return nil, err
		}
	}
	return &AwaitResult{Run: req.Run, Shard: req.Shard, Rang: due}, nil
}

// due reports whether the shard has something to do: an answer, its time, or what is asked of its run.
func (h *Handler) due(ctx context.Context, at run.ShardOf) (bool, error) {
	mail, err := run.Mail(ctx, h.Store, at)
	if err != nil || mail {
		return mail, err
	}
	cp, err := sheet.LoadCheckpoint(ctx, h.Store, at.Run, at.Shard)
	if errors.Is(err, table.ErrNotFound) {
		return true, nil // a slice says what is wrong
	}
	if err != nil || cp.Status != sheet.ShardParked || !cp.WakeAt.IsZero() && !time.Now().Before(cp.WakeAt) {
		return true, err
	}
	asked, err := sheet.LoadControl(ctx, h.Store, at.Run)
	return err == nil && asked.Halts(), err
}
