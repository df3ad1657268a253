package main

import (
	"strings"

	"github.com/oklog/ulid/v2"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/run"
	"sluice/internal/start"
)

// extendAt adds what was uploaded to a run of a deployment, and watches it: first until its rows are read, then to its end.
func (c *runCmd) extendAt(a *app, i *interruption, d deployment, s *spec, upload string, w work) error {
	format, err := c.options(c.Limit)
	if err != nil {
		return err
	}
	by := start.Extension{Map: string(s.docs.Map), Tools: string(s.docs.Tools), MapName: baseName(s.docs.MapFile), ToolsName: baseName(s.docs.ToolsFile),
		Vars: c.Set, Upload: upload, Encoding: format.Encoding, Limit: c.Limit}
	if format.Delimiter != 0 {
		by.Delimiter = string(format.Delimiter)
	}
	_, err = d.Extend(i.ctx, c.ID, strings.ToLower(ulid.Make().String()), by)
	switch client.Code(err) {
	case "":
	case api.NotFound:
		return usagef("there is no run %q to extend at %s; without --extend it is started", c.ID, d.URL())
	default:
		return remoteUsage(err)
	}
	if err != nil {
		return err
	}
	p := &watching{teller: silent{a.stderr}}
	v, err := d.awaitUntil(i.ctx, c.ID, p, func(v api.View) bool { return v.Asked != "extend" })
	p.close()
	if err != nil {
		return a.unwatched(d, c.ID, w, err)
	}
	if x := v.Extension; x != nil {
		if x.Error != "" {
			return usagef("%s", x.Error)
		}
		c.tellExtended(a, run.Extended{Rows: x.Rows, Duplicates: x.Duplicates})
	}
	return a.follow(i, d, c.ID, w)
}
