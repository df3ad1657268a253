package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"sluice/internal/core/gateway"
	"sluice/internal/core/intake"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/cost"
)

// costCommand is `go run . cost`: what a run of rows with three calls each would cost on AWS, as slices work there.
func costCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	rows := flags.Int("rows", 100_000, "rows, with three calls of 300 bytes each")
	dir := flags.String("dir", ".state", "folder for the database; on a real disk")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *rows < 1 {
		return errors.New("rows must be positive, and there are no arguments")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	rec, err := costRun(ctx, *dir, *rows)
	if err != nil {
		return err
	}
	printCost(os.Stdout, rec)
	return nil
}

// costRun makes the run and returns its record, with all that it used.
func costRun(ctx context.Context, dir string, rows int) (rec *sheet.Run, err error) {
	meter, st, closeStore, err := rowsStore(ctx, dir, "sqlite")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	job, err := run.Start(ctx, st, run.Request{
		Documents: sheet.Documents{MapFile: "rows.map.yaml", Map: []byte(rowsMaps[billed]), ToolsFile: "tools.yaml", Tools: []byte(rowsTools)},
		InputName: "rows.csv", Format: intake.Options{Format: intake.CSV},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(&people{n: rows}), nil },
	})
	if err != nil {
		return nil, err
	}
	gw := gateway.New(gateway.Config{Catalogue: job.Tools, Pacer: pacer.New(meter, "bench"), Sender: rowsSender{billed}, Secrets: noSecrets{}})
	if err := rowsWork(ctx, job, run.Ports{Store: st, Gateway: gw, Owner: "bench"}, rowsSettings(billed)); err != nil {
		return nil, err
	}
	_, err = job.Finish(ctx, run.Ports{Store: st}, run.Settings{}, func(ctx context.Context) error { return job.Export(ctx, run.Ports{Store: st}, io.Discard, "csv") })
	if err != nil {
		return nil, err
	}
	if c := job.Run.Counts; c.Completed != int64(rows) {
		return nil, fmt.Errorf("%d of %d rows completed, %d failed", c.Completed, rows, c.Failed)
	}
	job.Run.Usage = meter.Usage()
	return job.Run, nil
}

func printCost(w io.Writer, rec *sheet.Run) {
	s, bill := rec.Stats, cost.Of(cost.Used(rec))
	fmt.Fprintf(w, "%d rows, %d shards, %d slices of %.1f s in all, %d batches\n\n", bill.Rows, rec.Shards, s.Slices, float64(s.SliceMs)/1000, s.ToolBatches)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tused\tdollars\tper million rows\t")
	for _, l := range bill.Lines {
		fmt.Fprintf(table, "%s\t%.6g %s\t%.6f\t%.4f\t\n", l.Name, l.Quantity, l.Unit, l.Dollars, bill.Scaled(l.Dollars))
	}
	fmt.Fprintf(table, "total\t\t%.6f\t%.4f\t\n", bill.Total, bill.PerMillion)
	table.Flush()
	fmt.Fprintln(w, "\n"+bill.Prices)
}
