package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/start"
)

// runAt runs the map in a deployment: the files travel as documents, the input as an upload. Secrets are the deployment's.
func (c *runCmd) runAt(a *app, i *interruption, d deployment) error {
	s, err := loadSpec(c.Map, c.Tools)
	if err != nil {
		return err
	}
	out, err := c.checkFlags()
	if err != nil {
		return err
	}
	format, err := c.options(c.Limit)
	if err != nil {
		return err
	}
	if c.Extend && c.Concurrency != 0 {
		return errChosen
	}
	key, err := c.upload(i.ctx, a, d, s)
	if err != nil {
		return err
	}
	w := work{endFlags: c.endFlags, out: out, api: c.placeArg()}
	if c.Extend {
		return c.extendAt(a, i, d, s, key, w)
	}
	req := start.Request{
		Run: cmp.Or(c.ID, strings.ToLower(ulid.Make().String())), Map: string(s.docs.Map), Tools: string(s.docs.Tools),
		MapName: baseName(s.docs.MapFile), ToolsName: baseName(s.docs.ToolsFile), Vars: c.Set, Upload: key, Encoding: format.Encoding,
		Limit: c.Limit, Concurrency: c.Concurrency, Force: c.Force, StatusColumns: c.Statuses,
	}
	if format.Delimiter != 0 {
		req.Delimiter = string(format.Delimiter)
	}
	started, err := d.Start(i.ctx, req)
	if err != nil {
		return remoteUsage(err)
	}
	if !c.Quiet {
		fmt.Fprintf(a.stderr, "run %s is at work at %s\n", started.Run, d.URL())
	}
	return a.follow(i, d, started.Run, w)
}

// remoteUsage tells mistakes in what was given from what went wrong with the deployment.
func remoteUsage(err error) error {
	switch client.Code(err) {
	case api.BadRequest, api.Conflict, api.NobodyWaits, api.TooLate, api.TooLarge:
		return usage(err)
	}
	return err
}

// upload sends the input, and returns its key. Standard input is kept in a file first: it may have to be sent twice.
func (c *runCmd) upload(ctx context.Context, a *app, d deployment, s *spec) (string, error) {
	in, err := c.open(ctx, a.stdin)
	if err != nil {
		return "", usage(err)
	}
	defer in.Close()
	file, ok := in.(*os.File)
	if !ok || !regular(file) {
		kept, err := keep(in)
		if err != nil {
			return "", err
		}
		defer func() { _ = errors.Join(kept.Close(), os.Remove(kept.Name())) }()
		file = kept
	}
	if err := c.fits(ctx, file, s); err != nil {
		return "", usage(err)
	}
	key, err := d.Upload(ctx, file, uploadName(c.In))
	if err != nil {
		return "", fmt.Errorf("the input was not sent: %w", err)
	}
	return key, nil
}

// fits reads the input for mistakes, and holds its columns against the map, before anything is sent.
func (c *runCmd) fits(ctx context.Context, file *os.File, s *spec) error {
	options, err := c.options(c.Limit)
	if err != nil {
		return err
	}
	src, err := intake.Open(c.In, file, options)
	if err == nil && !src.Typed() { // JSON learns its columns as it goes
		err = s.m.CheckInput(c.Map, src.Columns())
	}
	if err == nil {
		err = intake.Drain(ctx, src)
	}
	if err == nil && src.Typed() {
		err = s.m.CheckInput(c.Map, src.Columns())
	}
	_, seekErr := file.Seek(0, io.SeekStart)
	return errors.Join(err, seekErr)
}

// baseName is a file's name without its folders, which are nobody's business; nothing for no file.
func baseName(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Base(name)
}

// regular reports whether a file can be read twice: a pipe with a name cannot.
func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// keep copies what can be read once into a file of its own.
func keep(in io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "sluice-input-*")
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, in); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// uploadName is the input's name as a deployment takes it: its extension tells the format, the rest is for messages.
func uploadName(in string) string {
	if in == "-" {
		return "standard-input"
	}
	const most = 100
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return r
		}
		return '_'
	}, filepath.Base(in))
	if name = strings.TrimLeft(name, "."); len(name) > most {
		name = name[len(name)-most:]
	}
	return cmp.Or(strings.TrimLeft(name, "."), "input")
}

var errChosen = usagef("--concurrency is chosen when a run is started, where it is worked on by a deployment")

// resumeAt lets a run of a deployment go on, and watches it.
func (c *resumeCmd) resumeAt(a *app, i *interruption, d deployment, out string) error {
	if c.Concurrency != 0 {
		return errChosen
	}
	var budget *api.Budget
	if c.BudgetCalls > 0 || c.BudgetCost > 0 {
		budget = &api.Budget{Calls: c.BudgetCalls, Cost: c.BudgetCost}
	}
	_, err := d.Resume(i.ctx, c.ID, budget)
	if err != nil && client.Code(err) != api.Ended { // a run that is completed is told again
		return d.named(remoteUsage(err), c.ID)
	}
	return a.follow(i, d, c.ID, work{endFlags: c.endFlags, out: out, api: c.placeArg()})
}

// retryAt runs the failed rows of a run of a deployment again, and watches it.
func (c *retryCmd) retryAt(a *app, i *interruption, d deployment, how run.RetryOptions, out string) error {
	if c.Concurrency != 0 {
		return errChosen
	}
	if _, err := d.Retry(i.ctx, c.ID, api.RetryRequest{Unknown: how.Unknown, Value: how.Value}); err != nil {
		return d.named(remoteUsage(err), c.ID)
	}
	return a.follow(i, d, c.ID, work{endFlags: c.endFlags, out: out, api: c.placeArg()})
}
