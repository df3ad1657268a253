package runmap

import (
	"context"
	"log/slog"
	"time"

	"sluice/functions/internal/bus"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
)

// LongPark is how long a shard waits at least for others to hear of it. The wait for a window of a minute is shorter: that
// is how such limits are used, minute after minute, and no news.
const LongPark = 90 * time.Second

// tellPark announces that a shard waits for long, once for a park: a slice that has come too early and parks again for the
// rest tells nothing. A park does not fail because nobody can be told of it.
func (h *Handler) tellPark(ctx context.Context, id string, shard int, res run.Result) {
	if res.Outcome != run.Parked || res.Early || time.Until(res.WakeAt) < LongPark {
		return
	}
	rec, err := sheet.Load(ctx, h.Store, id)
	if err == nil {
		err = h.Ending.Announcer.Announce(ctx, bus.OfPark(rec, shard, res.WakeAt))
	}
	if err != nil {
		edge.With(ctx, h.Log).Warn("park not told", slog.String(edge.KeyRun, id), slog.Int(edge.KeyShard, shard), slog.Any(edge.KeyError, err))
	}
}
