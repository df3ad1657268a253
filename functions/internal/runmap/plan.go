package runmap

import (
	"context"
	"strings"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// PlanResult is what plan returns: the shards, one item of the machine's Map each.
type PlanResult struct {
	Run    string       `json:"run"`
	Status sheet.Status `json:"status"`
	Shards []Shard      `json:"shards"`
}

// Shard is one item of the Map.
type Shard struct {
	Run   string `json:"run"`
	Shard int    `json:"shard"`
}

func (h *Handler) plan(ctx context.Context, id string) (any, error) {
	owner := run.Ports{Store: h.Store, Owner: strings.ToLower(ulid.Make().String())}
	if err := run.AskedRetry(ctx, owner, h.Settings, id); err != nil {
		return nil, named(err)
	}
	job, err := run.Plan(ctx, h.Store, id)
	if err != nil {
		return nil, named(err)
	}
	if err := ended(job.Run); err != nil {
		return nil, err
	}
	shards := job.Run.Shards
	if job.Run.Status == sheet.Cancelled || job.Run.Status == sheet.Paused {
		shards = 0 // there is nothing to do
	}
	res := &PlanResult{Run: id, Status: job.Run.Status, Shards: make([]Shard, shards)}
	for n := range res.Shards {
		res.Shards[n] = Shard{Run: id, Shard: n}
	}
	return res, nil
}
