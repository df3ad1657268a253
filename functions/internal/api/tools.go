package api

import (
	"context"
	"time"

	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/mapspec"
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
