package main

import (
	"context"
	"errors"
	"io"

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
		return c.fetch(ctx, a, deployment{remote})
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

// fetch gets the table from a deployment.
func (c *exportCmd) fetch(ctx context.Context, a *app, d deployment) error {
	format := c.Format
	if format == "" {
		format, _ = export.FormatOf(c.Out) // checked
	}
	table, err := d.Export(ctx, c.ID, format)
	if err != nil {
		return d.named(err, c.ID)
	}
	defer table.Close()
	return a.write(c.Out, func(w io.Writer) error {
		_, err := io.Copy(w, table)
		return err
	})
}
