package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// Request asks for a run to be started, or, where its id is taken by the same run, to be continued.
type Request struct {
	ID          string // empty: a new one
	Documents   sheet.Documents
	Set         map[string]string // variables
	InputName   string
	Input       func() (io.ReadCloser, error)
	Format      intake.Options
	Seal        intake.SealOptions
	Concurrency int
	Force       bool
	Out         string
	Statuses    bool          // status columns in the export even when no row failed
	Resolvers   resolver.Set  // that the map may use
	Source      *sheet.Source // Register: where the input lies
}

// ErrOtherRun: the id is taken by a run of another map or input.
var ErrOtherRun = errors.New("is another run")

// maxID keeps ids fit for file names and table keys.
const maxID = 100

// Start plans a run: the files are compiled and checked against each other, then the input is sealed. Nothing is
// called before all of that is well. Starting again under the same id gives the same run (X1).
func Start(ctx context.Context, st *store.Store, req Request) (*Job, error) {
	p, err := Prepare(req)
	if err != nil {
		return nil, err
	}
	m, tools := p.m, p.tools
	src, err := openSource(req)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if !src.Typed() { // its columns are known from the header
		if err := checkColumns(m, req.Documents.MapFile, src.Columns()); err != nil {
			return nil, err
		}
	}
	rec, err := reserve(ctx, st, req, m, tools)
	if err != nil {
		return nil, err
	}
	if rec.Status != sheet.Staging {
		return continued(ctx, st, rec, src)
	}
	job, err := seal(ctx, st, req, m, tools, rec, src)
	if errors.Is(err, table.ErrConflict) {
		return await(ctx, st, req, rec.ID, err)
	}
	return job, err
}

// Waiting for another start of the same run, which has the input under way.
const (
	awaitFor  = 30 * time.Second
	awaitLook = 50 * time.Millisecond
)

// await returns the run that another process is starting at the same moment (X1).
func await(ctx context.Context, st *store.Store, req Request, id string, cause error) (*Job, error) {
	for until := time.Now().Add(awaitFor); time.Now().Before(until); {
		rec, err := sheet.Load(ctx, st, id)
		switch {
		case errors.Is(err, sheet.ErrNoRun):
			return nil, cause // the other one was refused
		case err != nil:
			return nil, err
		case rec.Status != sheet.Staging:
			src, err := openSource(req)
			if err != nil {
				return nil, err
			}
			defer src.Close()
			return continued(ctx, st, rec, src)
		}
		select {
		case <-time.After(awaitLook):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, fmt.Errorf("run %q is being started by another process: %w", id, cause)
}

func checkID(id string) error {
	if len(id) > maxID {
		return fmt.Errorf("run id %q: at most %d characters", id, maxID)
	}
	if strings.HasPrefix(id, ".") { // no name in the blob store begins with one
		return fmt.Errorf("run id %q: it must not begin with `.`", id)
	}
	for _, c := range id {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c) {
			return fmt.Errorf("run id %q: use letters, digits, `-`, `_` and `.`", id)
		}
	}
	return nil
}

// openedSource is a source together with the file under it.
type openedSource struct {
	intake.Source
	io.Closer
}

func (s openedSource) digest() string {
	if d, ok := s.Source.(intake.Digester); ok {
		return d.SourceDigest()
	}
	return ""
}

func openSource(req Request) (openedSource, error) {
	file, err := req.Input()
	if err != nil {
		return openedSource{}, err
	}
	src, err := intake.Open(req.InputName, file, req.Format)
	if err != nil {
		file.Close()
		return openedSource{}, err
	}
	return openedSource{src, file}, nil
}

// checkColumns holds the map against the input's columns.
func checkColumns(m *mapspec.Map, file string, columns []string) error {
	if err := m.CheckInput(file, columns); err != nil {
		return err
	}
	if m.Output != nil {
		return nil
	}
	for _, c := range m.Columns {
		for _, name := range columns {
			if c.Name == name {
				return fmt.Errorf("%s: column %q has the name of an input column: rename it, or list the columns of the export under `output`", file, name)
			}
		}
	}
	return nil
}

// meaning is the digest of what the run does: map, tools and variables.
func meaning(m *mapspec.Map, tools *mapspec.Catalogue) (string, error) {
	vars, err := value.Encode(m.Vars)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write([]byte(m.Digest + "\n"))
	if tools != nil {
		h.Write([]byte(tools.Digest + "\n"))
	}
	h.Write(vars)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// reserve writes the run's record, or finds the one that has the id.
func reserve(ctx context.Context, st *store.Store, req Request, m *mapspec.Map, tools *mapspec.Catalogue) (*sheet.Run, error) {
	digest, err := meaning(m, tools)
	if err != nil {
		return nil, err
	}
	if req.ID != "" {
		rec, err := sheet.Load(ctx, st, req.ID)
		if err == nil {
			return rec, sameRun(rec, digest, req)
		}
		if !errors.Is(err, sheet.ErrNoRun) {
			return nil, err
		}
	}
	now := time.Now()
	rec := &sheet.Run{
		ID: req.ID, Name: m.Name, Status: sheet.Staging, MapFile: req.Documents.MapFile, MapDigest: digest, Vars: m.Vars,
		Input: req.InputName, Fingerprint: req.Seal.Fingerprint, Limit: req.Format.Limit, Source: req.Source, Shards: 1,
		Concurrency: req.Concurrency, Force: req.Force, Out: req.Out, Statuses: req.Statuses, CreatedAt: now.UTC(), Budget: sheet.Budget(m.Budget),
	}
	if rec.ID == "" {
		rec.ID = strings.ToLower(ulid.Make().String())
	}
	if err := rec.SaveDocuments(ctx, st, req.Documents); err != nil {
		return nil, err
	}
	err = sheet.Create(ctx, st, rec)
	if errors.Is(err, table.ErrConflict) { // started twice at the same moment
		return reserve(ctx, st, req, m, tools)
	}
	return rec, err
}

// sameRun refuses to continue a run under another map.
func sameRun(rec *sheet.Run, digest string, req Request) error {
	if rec.MapDigest != digest {
		return fmt.Errorf("run %q %w: it was started with another map, tools or variables; choose another --run", rec.ID, ErrOtherRun)
	}
	if rec.Limit != req.Format.Limit {
		return fmt.Errorf("run %q %w: it was started with --limit %d; choose another --run", rec.ID, ErrOtherRun, rec.Limit)
	}
	return nil
}

// continued returns the run that exists, after a look at the source: it must be the one that was sealed.
func continued(ctx context.Context, st *store.Store, rec *sheet.Run, src openedSource) (*Job, error) {
	if rec.StartedAt.IsZero() { // cancelled before its input was sealed
		return LoadJob(ctx, st, rec.ID)
	}
	if err := sameSource(ctx, rec, rec.Sealed, src); err != nil {
		return nil, err
	}
	return LoadJob(ctx, st, rec.ID)
}

// sameSource reads the source to its end and holds it against what was sealed.
func sameSource(ctx context.Context, rec *sheet.Run, sealed intake.Sealed, src openedSource) error {
	if err := intake.Drain(ctx, src); err != nil {
		return err
	}
	if !slices.ContainsFunc(sealed.AllParts(), func(p intake.Part) bool { return p.SourceDigest == src.digest() }) {
		return fmt.Errorf("run %q %w: it was started with another input; choose another --run, or `sluice resume %s` to go on with the sealed input",
			rec.ID, ErrOtherRun, rec.ID)
	}
	return nil
}

// seal makes the source the run's input and opens the run. A source that is refused leaves no run behind.
func seal(ctx context.Context, st *store.Store, req Request, m *mapspec.Map, tools *mapspec.Catalogue, rec *sheet.Run, src openedSource) (*Job, error) {
	began := time.Now()
	sealed, err := intake.Seal(ctx, st, rec.ID, src.Source, identity(m), req.Seal)
	if errors.Is(err, intake.ErrSealed) {
		err = sameSource(ctx, rec, sealed, src) // by an earlier start that did not get to write the record
		if err != nil {
			return nil, err
		}
	}
	if errors.Is(err, table.ErrConflict) {
		return nil, err
	}
	if err == nil {
		err = checkColumns(m, req.Documents.MapFile, sealed.Columns)
	}
	if err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, sheet.Remove(context.WithoutCancel(ctx), st, rec))
		}
		return nil, err
	}
	rec.PlanMs = time.Since(began).Milliseconds()
	return begin(ctx, st, rec, m, tools, sealed)
}

// begin opens a run whose input is sealed.
func begin(ctx context.Context, st *store.Store, rec *sheet.Run, m *mapspec.Map, tools *mapspec.Catalogue, sealed intake.Sealed) (*Job, error) {
	rec.Sealed, rec.Status, rec.StartedAt = sealed, sheet.Running, time.Now().UTC()
	rec.Shards = shardsFor(m, sealed.Rows, sealed.Pages)
	if err := sheet.Save(ctx, st, rec); err != nil {
		return nil, err
	}
	j := newJob(rec, m, tools)
	var err error
	j.manifest, err = intake.Manifest(ctx, st, rec.ID, sealed)
	return j, err
}

// identity is the map's key in the terms of intake.
func identity(m *mapspec.Map) intake.Identity {
	switch {
	case m.Key.Position():
		return intake.Position()
	case m.Key.Expr == nil:
		return intake.ByColumns(m.Key.Columns...)
	}
	return intake.ByKey(func(row map[string]any, index int64) (any, error) {
		return m.Key.Expr.Eval(&mapspec.Env{Row: row, Vars: m.Vars, Index: index})
	})
}
