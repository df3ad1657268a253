package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/internal/core/blob"
	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Where a run is started by one process and planned by another, Start falls into two halves: Register writes what was
// asked for, and Plan seals the input, which lies in the blob store.

// Prepared is a request whose map, tools and variables are well.
type Prepared struct {
	req   Request
	m     *mapspec.Map
	tools *mapspec.Catalogue
}

// Prepare compiles a request's files and checks them against each other. It writes nothing; its errors are the user's.
func Prepare(req Request) (*Prepared, error) {
	m, tools, err := compile(req.Documents, mapspec.Resolvers(req.Resolvers.Tools()))
	if err != nil {
		return nil, err
	}
	if err := m.SetVars(req.Set); err != nil {
		return nil, err
	}
	return &Prepared{req: req, m: m, tools: tools}, checkID(req.ID)
}

// Tools is the catalogue that the run's calls are made by; nil if it has none.
func (p *Prepared) Tools() *mapspec.Catalogue { return p.tools }

// CheckPrivate refuses a map that publishes for everybody, for where that is not allowed. The error is mapspec.Problems.
func (p *Prepared) CheckPrivate() error { return p.m.CheckPrivate(p.req.Documents.MapFile) }

// Map is what the run does.
func (p *Prepared) Map() *mapspec.Map { return p.m }

// ErrNoSource: a run that is planned later must say where its input lies.
var ErrNoSource = errors.New("the run does not say where its input lies")

// Register writes the run's record, in staging, with its files and where its input lies. Registering again gives the
// same run (X1), however far it has come by then; ErrOtherRun if the id is another run's.
func (p *Prepared) Register(ctx context.Context, st *store.Store) (*sheet.Run, error) {
	if p.req.Source == nil {
		return nil, ErrNoSource
	}
	rec, err := reserve(ctx, st, p.req, p.m, p.tools)
	if err == nil && rec.Fingerprint != p.req.Seal.Fingerprint {
		err = fmt.Errorf("run %q %w: it was started with another input", rec.ID, ErrOtherRun)
	}
	return rec, err
}

// RefusedError: the input cannot become a run's. Planning again would end the same way.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *RefusedError) Unwrap() error { return e.Err }

// Plan seals the input of a registered run and opens the run. Planning again changes nothing. Errors: *RefusedError;
// table.ErrConflict while another process plans the same run; others may pass.
func Plan(ctx context.Context, st *store.Store, id string) (*Job, error) {
	began := time.Now()
	j, err := LoadJob(ctx, st, id)
	if err != nil || j.Run.Status != sheet.Staging {
		return j, err
	}
	if j.Run.Source == nil {
		return nil, &RefusedError{fmt.Errorf("run %s: %w", id, ErrNoSource)}
	}
	j.Map.Vars = j.Run.Vars
	sealed, err := sealObject(ctx, st, j)
	if err != nil {
		return nil, err
	}
	if err := checkColumns(j.Map, j.Run.MapFile, sealed.Columns); err != nil {
		return nil, &RefusedError{err}
	}
	j.Run.PlanMs, j.Run.Usage = time.Since(began).Milliseconds(), j.Run.Usage.Add(j.used(st))
	return begin(ctx, st, j.Run, j.Map, j.Tools, sealed)
}

// sealObject reads the run's object into sealed pages, or finds that this was done by a planner that died.
func sealObject(ctx context.Context, st *store.Store, j *Job) (intake.Sealed, error) {
	src, err := openObject(ctx, st, j, sheet.More{Input: j.Run.Input, Source: *j.Run.Source, Limit: j.Run.Limit})
	if err != nil {
		return intake.Sealed{}, err
	}
	defer src.Close()
	sealed, err := intake.Seal(ctx, st, j.Run.ID, src.Source, identity(j.Map), intake.SealOptions{Fingerprint: j.Run.Fingerprint})
	if errors.Is(err, intake.ErrSealed) {
		return sealed, nil
	}
	return sealed, src.judge(err)
}

// object is a source that lies in the blob store.
type object struct {
	openedSource
	from *watched
}

// openObject opens the source, and holds its columns against the map as far as they are known. What is wrong with it is a
// *RefusedError.
func openObject(ctx context.Context, st *store.Store, j *Job, from sheet.More) (*object, error) {
	file, err := st.Blobs.Get(ctx, from.Object)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrInvalid) {
		return nil, &RefusedError{fmt.Errorf("the input %q is not there; upload it first", from.Object)}
	}
	if err != nil {
		return nil, fmt.Errorf("input of run %s: %w", j.Run.ID, err)
	}
	announced := blob.Expected{SHA256: from.SHA256}
	if from.SHA256 != "" && from.Limit > 0 { // it will not be read to its end below
		if file, err = whole(ctx, st, from.Object, file, announced); err != nil {
			return nil, err
		}
	}
	r := &watched{r: announced.Check(file)}
	src, err := intake.Open(from.Input, r, intake.Options{Format: from.Format, Encoding: from.Encoding, Delimiter: from.Delimiter, Limit: from.Limit})
	if err == nil && !src.Typed() { // its columns are known from the header
		err = checkColumns(j.Map, j.Run.MapFile, src.Columns())
	}
	if err != nil {
		file.Close()
		return nil, r.judge(err)
	}
	return &object{openedSource{src, file}, r}, nil
}

// judge tells what is wrong with the source from what may pass.
func (o *object) judge(err error) error {
	if err != nil && (o.from.other || intake.Refused(err) || errors.Is(err, intake.ErrBudget)) {
		return o.from.judge(err)
	}
	return err
}

// watched remembers whether reading failed: a file that broke off is not a file that is wrong. One that is another file than was
// announced is; nothing of it is sealed, because that shows before its end (H7).
type watched struct {
	r      io.Reader
	failed error
	other  bool
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	switch {
	case errors.Is(err, blob.ErrUnexpected):
		w.failed, w.other = err, true
	case err != nil && !errors.Is(err, io.EOF):
		w.failed = err
	}
	return n, err
}

func (w *watched) judge(err error) error {
	switch {
	case w.other:
		return changedInput(w.failed)
	case w.failed != nil:
		return err
	}
	return &RefusedError{err}
}

func changedInput(err error) error {
	return &RefusedError{fmt.Errorf("the input was changed after it was announced: %w; upload it again, and start another run", err)}
}

// whole reads a file to its end, for its digest, and opens it anew.
func whole(ctx context.Context, st *store.Store, name string, file io.ReadCloser, announced blob.Expected) (io.ReadCloser, error) {
	_, err := io.Copy(io.Discard, announced.Check(file))
	file.Close()
	switch {
	case errors.Is(err, blob.ErrUnexpected):
		return nil, changedInput(err)
	case err != nil:
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	return st.Blobs.Get(ctx, name)
}
