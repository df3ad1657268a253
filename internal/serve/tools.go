package serve

import (
	"context"
	"errors"
	"time"

	"sluice/internal/api"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
	"sluice/internal/strict"
)

// patience is how long a call may take; a tool's own timeout is what usually ends it.
const patience = 15 * time.Minute

// Tools makes calls in this process.
type Tools struct {
	State     *local.State
	Secrets   gateway.Secrets
	UserAgent string
}

var _ api.Tools = Tools{}

// Patience implements api.Tools.
func (Tools) Patience() time.Duration { return patience }

// Gateway implements api.Tools.
func (t Tools) Gateway(ctx context.Context, run string, text api.Catalogue) (api.Gateway, error) {
	if run != "" {
		rec, err := sheet.Load(ctx, t.State.Store, run)
		if err != nil {
			return nil, err
		}
		docs, err := rec.Documents(ctx, t.State.Store)
		if err != nil {
			return nil, err
		}
		if docs.Tools == nil {
			return nil, strict.Errorf("run %s has no tools", run)
		}
		text = api.Catalogue{Name: docs.ToolsFile, Text: string(docs.Tools)}
	}
	tools, err := mapspec.ParseTools(text.Name, []byte(text.Text))
	if err != nil {
		return nil, strict.Wrap(err)
	}
	st := t.State.Session()
	return session{st.Gateway(tools, t.Secrets, t.UserAgent), st}, nil
}

// session is a gateway with what it has leased.
type session struct {
	*gateway.Executor
	st *local.State
}

// Close implements api.Gateway.
func (s session) Close(ctx context.Context) error {
	return errors.Join(s.Executor.Close(ctx), s.st.Close())
}
