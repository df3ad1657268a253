package run

import (
	"bytes"
	"context"
	"fmt"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
)

// Published is the folder of the blob store that published objects are in.
const Published = "published/"

// PublishedName is the name in the blob store of what a run has published.
func PublishedName(run, name string) string { return Published + run + "/" + name }

// publish puts the content of a step under its name. It may be done more than once: the content is made of what is
// sealed, so that it is the same each time.
func (r *row) publish(ctx context.Context, p *mapspec.Publish) (sheet.FinishStep, result) {
	made := sheet.FinishStep{Publish: p.Name, Public: p.Public}
	content, err := p.Bytes(&r.env)
	if err != nil {
		made.Error = faultOf(exprError(err))
		return made, result{}
	}
	if r.s.ports.Store.Blobs == nil {
		return made, result{err: fmt.Errorf("publish %s: there is no blob store", p.Name)}
	}
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	name := PublishedName(r.s.job.known(), p.Name)
	if err := r.s.ports.Store.Blobs.Put(durable, name, bytes.NewReader(content)); err != nil {
		return made, result{err: fmt.Errorf("publish %s: %w", p.Name, err)}
	}
	made.Size = len(content)
	return made, result{}
}
