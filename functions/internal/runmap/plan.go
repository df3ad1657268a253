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
	if err := run.AskedExtend(ctx, h.Store, id); err != nil {
		return nil, named(err)
	}
	job, err := run.Plan(ctx, h.Store, id)
	if err != nil {
		return nil, named(err)
	}
	if err := ended(job.Run); err != nil {
		return nil, err
	}
	shards, err := h.shards(ctx, job)
	if err != nil {
		return nil, err
	}
	res := &PlanResult{Run: id, Status: job.Run.Status, Shards: make([]Shard, len(shards))}
	for i, n := range shards {
		res.Shards[i] = Shard{Run: id, Shard: n}
	}
	return res, nil
}

// shards are those that there is work to do on: all of a new run, and of one that goes on those that are not done.
func (h *Handler) shards(ctx context.Context, job *run.Job) ([]int, error) {
	switch {
	case job.Run.Status == sheet.Cancelled || job.Run.Status == sheet.Paused:
		return nil, nil
	case job.Run.Execution() > 0:
		return job.Unfinished(ctx, h.Store)
	}
	all := make([]int, job.Run.Shards)
	for n := range all {
		all[n] = n
	}
	return all, nil
}
