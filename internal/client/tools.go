package client

import (
	"context"
	"net/http"

	"sluice/internal/api"
	"sluice/internal/core/call"
)

// Tools makes calls of the tools of a file, where the deployment's secrets are. It is a call.Gateway.
type Tools struct {
	Client *Client
	File   api.Catalogue
}

var _ call.Gateway = Tools{}

// Execute implements call.Gateway. Each attempt is one request, which is repeated only where nothing was done.
func (t Tools) Execute(ctx context.Context, batch []call.Attempt, deliver func(i int, a call.Answer)) error {
	for i, a := range batch {
		r := request{method: http.MethodPost, path: []string{"tools", a.Tool}, once: true, header: http.Header{api.KeyHeader: {a.RequestID}},
			body: api.ToolRequest{Tools: t.File.Text, ToolsName: t.File.Name, With: a.Input}}
		var c api.Called
		if err := t.Client.do(ctx, r, &c); err != nil {
			return err
		}
		deliver(i, call.Answer{Outcome: c.Outcome, Value: c.Value, Error: c.Error, Until: c.Until, Dispatched: c.Dispatched, Status: c.Status, CostMicros: c.CostMicros})
	}
	return nil
}
