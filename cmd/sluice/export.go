package main

import (
	"errors"

	"sluice/internal/core/export"
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
func (c *exportCmd) Run(a *app) (err error) {
	ctx, cancel := a.context()
	defer cancel()
	if c.Format == "" {
		if _, err := export.FormatOf(c.Out); err != nil {
			return usage(err)
		}
	}
	remote, err := c.remote(a)
	if err != nil {
		return err
	}
	if remote != nil {
		return a.fetch(ctx, deployment{remote}, c.ID, c.Out, c.Format)
	}
	st, err := a.open(ctx, c.dir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	job, err := loadJob(ctx, st, c.ID)
	if err != nil {
		return err
	}
	return a.export(ctx, st, job, c.Out, c.Format)
}
