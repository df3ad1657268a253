package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"sluice/internal/answers"
	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/start"
)

// Ports is what the API works with.
type Ports struct {
	Store   *store.Store
	Starter Starter
	Kicker  Kicker
	Links   Links
	Tools   Tools
	Desk    *answers.Desk
	Log     *slog.Logger
	// AnswerPage is where people answer by links; answers.Page.
	AnswerPage http.Handler
	// AllowPublic gives what maps have published with `public: true` to everybody.
	AllowPublic bool
	// BillNote is what bills have to say of where the work is done; empty: nothing.
	BillNote string
	// Page answers GET / and what is below /page/; nil: there is none.
	Page http.Handler
	// RequestID names a request in the log; nil: it has no name.
	RequestID func(context.Context) string
}

// Starter begins runs, and notes what they are extended by; start.Starter is one.
type Starter interface {
	Start(ctx context.Context, req start.Request) (*sheet.Run, error)
	Extend(ctx context.Context, run, key string, req start.Extension) (*sheet.Run, error)
}

// Kicker makes whoever works on a run do what is asked of it by now: begin, go on, or stop. Kicking again is harmless.
type Kicker interface {
	Kick(ctx context.Context, id string) error
}

// Link is a request that whoever has it may make, until it expires. It is a secret of sorts, and never logged.
type Link struct {
	Method string
	URL    string            // absolute, or relative to where the API is
	Header map[string]string // to be sent with it
}

// Links signs requests to where files are.
type Links interface {
	// Upload puts one object into the blob store, which must be as it is expected.
	Upload(ctx context.Context, name string, of blob.Expected, expires time.Duration) (Link, error)
	// Table gets the finished table of a completed run in a format of package export.
	Table(ctx context.Context, r *sheet.Run, format string, expires time.Duration) (Link, error)
	// Published gets what a run has published, to be saved as a file of that name and never shown as a page.
	Published(ctx context.Context, run, name string, expires time.Duration) (Link, error)
}

// Tools makes single calls.
type Tools interface {
	// Gateway executes calls of the catalogue, which is the run's, or, where run is empty, the text's. What it cannot make,
	// and why, is a *strict.Error. The caller closes it.
	Gateway(ctx context.Context, run string, tools Catalogue) (Gateway, error)
	// Patience is how long a call may take here, its turn included.
	Patience() time.Duration
}

// Catalogue is the text of a tool file.
type Catalogue struct {
	Name string
	Text string
}

// Gateway is a call.Gateway that is given back after use.
type Gateway interface {
	call.Gateway
	Close(ctx context.Context) error
}

var _ Starter = (*start.Starter)(nil)

// rows is what reading rows needs of the engine.
func (p *Ports) rows() run.Ports { return run.Ports{Store: p.Store} }
