package main

import (
	"sluice/internal/core/export"
	"sluice/internal/local"
)

type exportCmd struct {
	ID     string `arg:"" name:"run" help:"Id of the run."`
	Out    string `placeholder:"FILE" default:"-" help:"File to write, which appears whole or not at all; - is standard output."`
	Format string `enum:",csv,jsonl" default:"" help:"csv or jsonl; default: by the file's extension, CSV on standard output."`
	placeFlags
}

// Help implements kong.HelpProvider.
func (*exportCmd) Help() string {
	return `Examples:
  sluice export monday --out enriched.csv
  sluice export monday --format jsonl | jq .company

Only a run that has ended is exported, and only if it is whole. Failed rows are in their place, with their input
columns, and _status and _error say what went wrong.`
}

// Run implements the command.
func (c *exportCmd) Run(a *app) error {
	ctx, cancel := a.context()
	defer cancel()
	if c.Format == "" {
		if _, err := export.FormatOf(c.Out); err != nil {
			return usage(err)
		}
	}
	return c.work(ctx, a,
		func(d deployment) error { return a.fetch(ctx, d, c.ID, c.Out, c.Format) },
		func(st *local.State) error {
			job, err := loadJob(ctx, st, c.ID)
			if err != nil {
				return err
			}
			return a.export(ctx, st, job, c.Out, c.Format)
		})
}
