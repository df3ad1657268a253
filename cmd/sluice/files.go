package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/core/export"
	"sluice/internal/core/gateway"
	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/resolvers"
)

// maxSpec bounds the map and tool files; they are written by hand.
const maxSpec = 8 << 20

func readSpec(what, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("%s: %w", what, plainPathError(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSpec+1))
	if err != nil {
		return nil, usagef("%s: %w", what, plainPathError(err))
	}
	if len(b) > maxSpec {
		return nil, usagef("%s: %s has more than %d MB; is it the right file?", what, path, maxSpec>>20)
	}
	return b, nil
}

// plainPathError turns "open x: no such file or directory" into words.
func plainPathError(err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", p.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read: permission denied", p.Path)
	}
	return fmt.Errorf("%s: %w", p.Path, p.Err)
}

// spec is a map with its tools.
type spec struct {
	docs  sheet.Documents
	m     *mapspec.Map
	tools *mapspec.Catalogue
}

// loadSpec reads and compiles the two files. The error names every mistake.
func loadSpec(mapFile, toolsFile string) (*spec, error) {
	s := &spec{docs: sheet.Documents{MapFile: mapFile, ToolsFile: toolsFile}}
	var err error
	if s.docs.Map, err = readSpec("map", mapFile); err != nil {
		return nil, err
	}
	if toolsFile != "" {
		if s.tools, s.docs.Tools, err = loadTools(toolsFile); err != nil {
			return nil, err
		}
	}
	if s.m, err = mapspec.ParseMap(mapFile, s.docs.Map, s.tools, mapspec.Resolvers(resolvers.All().Tools())); err != nil {
		return nil, usage(err)
	}
	return s, nil
}

func loadTools(file string) (*mapspec.Catalogue, []byte, error) {
	b, err := readSpec("tools", file)
	if err != nil {
		return nil, nil, err
	}
	tools, err := mapspec.ParseTools(file, b)
	return tools, b, usage(err)
}

// checkSecrets resolves the secrets of the tools' providers, and names all that are missing. Values go nowhere.
func checkSecrets(ctx context.Context, secrets gateway.Secrets, tools map[string]*mapspec.Tool) error {
	providers := map[string]*mapspec.Provider{}
	for _, t := range tools {
		providers[t.Provider.Name] = t.Provider
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		auth := providers[name].Auth
		if auth.Kind == mapspec.AuthNone {
			continue
		}
		if _, err := secrets.Resolve(ctx, auth.Secret); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", name, err))
		}
	}
	return usage(errors.Join(errs...))
}

// input is the table that a run reads.
type input struct {
	In        string `required:"" placeholder:"FILE" help:"Table to read: CSV, JSONL or a JSON array; - is standard input."`
	Encoding  string `placeholder:"NAME" help:"Encoding of the input, such as windows-1252 or latin1; default UTF-8, or UTF-16 by its mark."`
	Delimiter string `placeholder:"CHAR" help:"Delimiter of a CSV: a character, or 'tab'; default: detected among comma, semicolon and tab."`
}

func (i *input) options(limit int64) (intake.Options, error) {
	o := intake.Options{Encoding: i.Encoding, Limit: limit}
	switch d := i.Delimiter; {
	case d == "":
	case d == "tab", d == `\t`:
		o.Delimiter = '\t'
	case len(d) == 1 && d[0] != '"' && d[0] != '\n' && d[0] != '\r':
		o.Delimiter = d[0]
	default:
		return o, usagef("--delimiter %q: one ASCII character that is not a quote, or 'tab'", d)
	}
	return o, nil
}

func (i *input) open(ctx context.Context, stdin io.Reader) (io.ReadCloser, error) {
	if i.In == "-" {
		return interruptible(ctx, stdin), nil
	}
	f, err := os.Open(i.In)
	if err != nil {
		return nil, fmt.Errorf("input: %w", plainPathError(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(fmt.Errorf("input: %s is a folder", i.In), f.Close())
	}
	return f, nil
}

// interruptible reads from r until ctx ends, also while r, such as a terminal, has nothing to say.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	pr, pw := io.Pipe()
	context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	return pr
}

// fingerprint tells two states of a file apart without reading it (M1). Standard input has none.
func (i *input) fingerprint() (string, error) {
	if i.In == "-" {
		return "", nil
	}
	info, err := os.Stat(i.In)
	if err != nil {
		return "", fmt.Errorf("input: %w", plainPathError(err))
	}
	return strings.Join([]string{filepath.Base(i.In), strconv.FormatInt(info.Size(), 10), strconv.FormatInt(info.ModTime().UnixNano(), 10)}, "/"), nil
}

// checkOut finds what is wrong with an output path before anything is paid for. It returns the path to keep in the
// run's record: one that holds from any folder.
func checkOut(path string) (string, error) {
	if path == "" || path == "-" {
		return path, nil
	}
	if _, err := export.FormatOf(path); err != nil {
		return "", usagef("output: %s: the name must end in .csv or .jsonl", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", usagef("output: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(abs)); err != nil || !info.IsDir() {
		return "", usagef("output: there is no folder %s", filepath.Dir(path))
	}
	probe, err := export.File(abs)
	if err != nil {
		return "", usagef("output: %s cannot be written: %w", path, err)
	}
	probe.Abort()
	return abs, nil
}
