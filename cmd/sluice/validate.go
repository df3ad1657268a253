package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sluice/internal/core/intake"
)

type validateCmd struct {
	Map       string `arg:"" help:"Map file (YAML or JSON)."`
	Tools     string `placeholder:"FILE" help:"Tool catalogue; needed if the map makes calls."`
	In        string `placeholder:"FILE" help:"Input whose columns the map is checked against; - is standard input."`
	Encoding  string `placeholder:"NAME" help:"Encoding of the input; default UTF-8, or UTF-16 by its mark."`
	Delimiter string `placeholder:"CHAR" help:"Delimiter of a CSV input; default: detected."`
}

// Help implements kong.HelpProvider.
func (*validateCmd) Help() string {
	return `Examples:
  sluice validate leads.map.yaml --tools tools.yaml
  sluice validate leads.map.yaml --tools tools.yaml --in leads.csv

Every mistake is told with its place as FILE:LINE:COLUMN. Nothing is called, no secret is needed.`
}

// Run implements the command.
func (c *validateCmd) Run(a *app) error {
	ctx, cancel := a.context()
	defer cancel()
	s, err := loadSpec(c.Map, c.Tools)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s is valid: %s", c.Map, plural(int64(len(s.m.Columns)), "column", "columns"))
	if s.tools != nil {
		text += fmt.Sprintf(", %s of %s used", number(int64(len(s.m.Tools()))), plural(int64(len(s.tools.Tools)), "tool", "tools"))
	}
	if c.In != "" {
		columns, err := c.columns(ctx, a.stdin)
		if err != nil {
			return usage(err)
		}
		if err := s.m.CheckInput(c.Map, columns); err != nil {
			return usage(err)
		}
		text += fmt.Sprintf(", %s in %s", plural(int64(len(columns)), "input column", "input columns"), inputName(c.In))
	}
	_, err = fmt.Fprintln(a.stdout, clean(text))
	return err
}

func inputName(in string) string {
	if in == "-" {
		return "standard input"
	}
	return in
}

// sampleRows is how many rows of a source without a header are read to learn its columns.
const sampleRows = 1000

func (c *validateCmd) columns(ctx context.Context, stdin io.Reader) ([]string, error) {
	in := input{In: c.In, Encoding: c.Encoding, Delimiter: c.Delimiter}
	options, err := in.options(sampleRows)
	if err != nil {
		return nil, err
	}
	file, err := in.open(ctx, stdin)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	src, err := intake.Open(c.In, file, options)
	if err != nil {
		return nil, err
	}
	if src.Typed() { // JSON learns its columns as it goes
		err = intake.Drain(ctx, src)
	}
	return slices.Clone(src.Columns()), err
}
