package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/answers"
	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/invoke"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// patience is how long a call may take: API Gateway gives up after 29 s, and the answer takes its time.
const patience = 25 * time.Second

// Tools makes calls through toolexec, which alone sees secrets.
type Tools struct {
	Invoker invoke.Invoker
	Store   *store.Store
	Blobs   blob.Store
}

var _ api.Tools = Tools{}

// Patience implements api.Tools.
func (Tools) Patience() time.Duration { return patience }

// Gateway implements api.Tools.
func (t Tools) Gateway(ctx context.Context, run string, text api.Catalogue) (api.Gateway, error) {
	tools, err := t.catalogue(ctx, run, text)
	if err != nil {
		return nil, err
	}
	g := invoke.New(t.Invoker, run, tools, t.Blobs)
	if run == "" {
		g.Tools = &invoke.Tools{Name: text.Name, Text: text.Text}
	}
	return remote{g}, nil
}

// catalogue is needed for what may be repeated; toolexec reads its own.
func (t Tools) catalogue(ctx context.Context, run string, text api.Catalogue) (*mapspec.Catalogue, error) {
	if run != "" {
		rec, err := sheet.Load(ctx, t.Store, run)
		if err != nil {
			return nil, err
		}
		docs, err := rec.Documents(ctx, t.Store)
		if err != nil {
			return nil, err
		}
		if docs.Tools == nil {
			return nil, strict.Errorf("run %s has no tools", run)
		}
		return mapspec.ParseTools(docs.ToolsFile, docs.Tools)
	}
	tools, err := mapspec.ParseTools(text.Name, []byte(text.Text))
	if err != nil {
		return nil, strict.Wrap(err)
	}
	return tools, start.CloudTools(tools)
}

// remote is a gateway that holds nothing: toolexec gives back what it has leased.
type remote struct{ *invoke.Gateway }

func (remote) Close(context.Context) error { return nil }

// Executions starts the execution of a run; start.Executions.
type Executions = start.Executions

// Kicker starts the execution of a run that is to go on, and wakes the shards of one that is to stop.
type Kicker struct {
	Store      *store.Store
	Executions Executions
	Bell       answers.Bell
}

// Kick implements api.Kicker.
func (k Kicker) Kick(ctx context.Context, id string) error {
	rec, err := sheet.Load(ctx, k.Store, id)
	if err != nil || rec.Status.Ended() {
		return err
	}
	asked, err := sheet.LoadControl(ctx, k.Store, id)
	if err != nil {
		return err
	}
	if asked.Halts() { // its slices see it, also those that sleep until an answer comes
		for shard := range rec.Shards {
			if err := k.Bell.Ring(ctx, run.ShardOf{Run: id, Shard: shard}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := k.Executions.Start(ctx, id, rec.Execution()); err != nil {
		return errors.Join(fmt.Errorf("run %s goes on, but was not started", id), err)
	}
	return nil
}
