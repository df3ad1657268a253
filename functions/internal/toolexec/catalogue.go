package toolexec

import (
	"context"
	"fmt"
	"sync"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/edge"
)

// Catalogues finds the compiled tool catalogue of a run.
type Catalogues interface {
	Of(ctx context.Context, run string) (*mapspec.Catalogue, error)
}

// maxCatalogues bounds what a process keeps. Beyond it everything is forgotten: reading again is cheap.
const maxCatalogues = 64

// Stored reads catalogues from the documents of runs. A run's documents never change, so they are read once; runs with
// the same catalogue share one.
type Stored struct {
	Store *store.Store

	mu       sync.Mutex
	byRun    map[string]*mapspec.Catalogue
	byDigest map[string]*mapspec.Catalogue
}

// Of implements Catalogues.
func (s *Stored) Of(ctx context.Context, run string) (*mapspec.Catalogue, error) {
	s.mu.Lock()
	c := s.byRun[run]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	rec, err := sheet.Load(ctx, s.Store, run)
	if err != nil {
		return nil, err
	}
	docs, err := rec.Documents(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	if docs.Tools == nil {
		return nil, &edge.RunFailed{Cause: fmt.Errorf("run %s has no tools", run)}
	}
	if c, err = mapspec.ParseTools(docs.ToolsFile, docs.Tools); err != nil {
		return nil, &edge.RunFailed{Cause: err}
	}
	return s.keep(run, c), nil
}

func (s *Stored) keep(run string, c *mapspec.Catalogue) *mapspec.Catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRun == nil || len(s.byRun) >= maxCatalogues {
		s.byRun, s.byDigest = map[string]*mapspec.Catalogue{}, map[string]*mapspec.Catalogue{}
	}
	if same := s.byDigest[c.Digest]; same != nil {
		c = same
	}
	s.byRun[run], s.byDigest[c.Digest] = c, c
	return c
}
