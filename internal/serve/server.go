package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"sluice/internal/answers"
	"sluice/internal/api"
	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/cost"
	"sluice/internal/local"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// Options are what a server needs.
type Options struct {
	State     *local.State
	Secrets   gateway.Secrets
	UserAgent string
	Key       string // empty: none is asked for
	Page      http.Handler
	// AllowPublic gives what maps publish with `public: true` to whoever asks for it, without a key.
	AllowPublic bool
	URL         string       // where people reach the server, for links that they answer by; empty: maps have none
	Log         *slog.Logger // of runs, and of what goes wrong
	Requests    *slog.Logger // of requests
}

// Server answers the API and works on runs.
type Server struct {
	Runner *Runner
	http   *http.Server
}

// How long a client may take to say what it wants, and how long the answers to those who have are waited for at the end.
const (
	headerTimeout = 10 * time.Second
	goodbye       = 5 * time.Second
)

// New returns a server. It works on nothing before Serve.
func New(o Options) *Server {
	r := &Runner{State: o.State, Secrets: o.Secrets, UserAgent: o.UserAgent, Log: o.Log, URL: o.URL}
	links := NewLinks(o.State.Store)
	desk := &answers.Desk{Store: o.State.Store} // who works on a run here looks by himself
	handler := api.New(api.Ports{
		Store: o.State.Store, Kicker: r, Links: links, Log: o.Requests, Page: o.Page, AllowPublic: o.AllowPublic,
		BillNote: cost.LaptopNote, Desk: desk, AnswerPage: answers.NewPage(desk, o.Requests),
		Starter: &start.Starter{Store: o.State.Store, Executions: r, Accept: o.accept, Resolvers: o.State.Resolvers},
		Tools:   Tools{State: o.State, Secrets: o.Secrets, UserAgent: o.UserAgent},
	})
	mux := http.NewServeMux()
	mux.Handle(linkPath, links)
	mux.Handle("/", handler)
	return &Server{Runner: r, http: &http.Server{
		Handler: newGuard(o.Key, mux), ReadHeaderTimeout: headerTimeout,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}}
}

// Serve answers and works until stop is closed; then it lets calls under way come to their end and saves everything. When ctx
// ends, it stops at once.
func (s *Server) Serve(ctx context.Context, l net.Listener, stop <-chan struct{}) error {
	if err := s.Runner.Begin(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-stop:
	case <-ctx.Done():
	}
	s.Runner.Park()
	s.Runner.Wait() // how far they are can be asked meanwhile
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if shutErr := s.http.Shutdown(bye); shutErr != nil {
		_ = s.http.Close() // who has not been answered by now asks again
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// accept refuses, before anything is written, a run whose providers' secrets this machine does not have, and one that
// publishes for everybody, unless that is allowed.
func (o Options) accept(ctx context.Context, p *run.Prepared) error {
	if err := p.CheckPrivate(); err != nil && !o.AllowPublic {
		return strict.Wrap(err)
	}
	providers := map[string]*mapspec.Provider{}
	for _, tool := range p.Map().Tools() {
		providers[tool.Provider.Name] = tool.Provider
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		auth := providers[name].Auth
		if auth.Kind == mapspec.AuthNone {
			continue
		}
		if _, err := o.Secrets.Resolve(ctx, auth.Secret); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", name, err))
		}
	}
	if len(errs) > 0 {
		return strict.Wrap(errors.Join(errs...))
	}
	return nil
}
