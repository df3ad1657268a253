// Package mapspec reads the two files a user writes, the map and the tool catalogue, and compiles them: every
// mistake is reported at once, with file, line, column and a remedy, before anything runs. It owns the language
// (names, defaults, expressions) and refuses to do anything else: it opens no file, calls nothing, keeps no state.
package mapspec

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Map is a compiled map: what to do for each row.
type Map struct {
	Name        string
	Key         Key
	Vars        map[string]any // defaults; the values given at start override them
	Concurrency int            // rows at once in one slice; 0 is automatic
	FailFast    bool           // onRowError: fail
	Budget      Budget
	Columns     []Column
	Output      []OutputColumn // nil: all input columns, then all cells
	Finish      []FinishStep   // what is done once, when every row has ended
	Digest      string         // hex SHA-256 of the meaning of the file: formatting and comments do not change it

	keyAt        pos
	keyColumnsAt []pos
	rowRefs      []rowRef
}

// Key says what makes a row the same row.
type Key struct {
	Columns []string  // one or more input columns
	Expr    *Template // an expression
	// neither: the row's position in the source
}

// Position reports whether rows are identified by their position.
func (k Key) Position() bool { return len(k.Columns) == 0 && k.Expr == nil }

// Column is one cell to fill. Exactly one of Value, Sleep, Event, Resolve and Steps is set, but for the Steps of an event.
type Column struct {
	Name      string
	When      *Template // nil: always
	Value     *Template // a `value` column
	Steps     []Step    // a `call` column has one step; a `waterfall` has its steps in order; an `event` its notification, or none
	Waterfall bool
	Otherwise *Template // waterfall: when no step was accepted; nil means null
	OnError   *Template // the value when this cell fails; nil: the row fails
	Sleep     *Span     // a `sleep` column
	Event     *Event    // an `event` column
	Resolve   *Resolve  // a `resolve` column
}

// Step is one tool call of a column.
type Step struct {
	Tool   *Tool
	With   *Template // evaluates to a map
	Accept *Template // waterfall: nil accepts every result that is not missing
	Result *Template // what to keep; nil keeps all of it
}

// Arguments computes the call's input and checks it against what the tool declares.
func (s *Step) Arguments(env *Env) (map[string]any, error) {
	v, err := s.With.Eval(env)
	if err != nil {
		return nil, err
	}
	with, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("`with` must be a map, not %s", typeName(v))
	}
	return s.Tool.CheckInput(with)
}

// Templates are all that the column computes; some may be nil.
func (c *Column) Templates() []*Template {
	list := []*Template{c.When, c.Value, c.Otherwise, c.OnError, c.Sleep.Template()}
	for _, s := range c.Steps {
		list = append(list, s.With, s.Accept, s.Result)
	}
	if c.Event != nil {
		list = append(list, c.Event.templates()...)
	}
	if c.Resolve != nil {
		list = append(list, c.Resolve.With)
	}
	return list
}

// Cells returns the names of the earlier columns that the column refers to; all means that it may read any of them.
// Columns that do not refer to each other may be computed at once.
func (c *Column) Cells() (names []string, all bool) {
	for _, t := range c.Templates() {
		some, every := t.Cells()
		names, all = append(names, some...), all || every
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// OutputColumn is one column of the export.
type OutputColumn struct {
	Name  string
	Value *Template
}

// Tools returns the tools that the map calls, by name. Those of resolvers are known where the map was read with Resolvers.
func (m *Map) Tools() map[string]*Tool {
	used := map[string]*Tool{}
	for _, c := range m.Columns {
		for _, step := range c.Steps {
			used[step.Tool.Name] = step.Tool
		}
		if c.Resolve != nil {
			for _, tool := range c.Resolve.Tools {
				used[tool.Name] = tool
			}
		}
	}
	for _, f := range m.Finish {
		if f.Call != nil {
			used[f.Call.Tool.Name] = f.Call.Tool
		}
	}
	return used
}

// Catalogue is a compiled tool file.
type Catalogue struct {
	Providers map[string]*Provider
	Tools     map[string]*Tool
	Digest    string // as Map.Digest
}

// Provider is an API with its credential and its limits.
type Provider struct {
	Name         string
	URL          *url.URL
	Auth         Auth
	Limits       []Limit       // all must allow; never empty: the documented default stands in
	Concurrency  int           // calls in flight over all runs; 0: not limited
	Adaptive     bool          // it declares neither limits nor concurrency: Concurrency is only where to begin
	NoProgress   time.Duration // default 30 m
	Cooldown     time.Duration // base for a 429 without a deadline, default 10 s
	ResetHeaders []string
	AllowPrivate bool
}

// Limit means: at most Rate dispatches in any window of length Per, by all runs together.
type Limit struct {
	Rate  int
	Per   time.Duration
	Burst int // at most this many back to back; 0: the pacer's default
}

// AuthKind is how a credential travels.
type AuthKind string

// The kinds of authentication.
const (
	AuthNone   AuthKind = ""
	AuthHeader AuthKind = "header"
	AuthQuery  AuthKind = "query"
	AuthBasic  AuthKind = "basic"
	AuthOAuth2 AuthKind = "oauth2"
)

// Auth says where the credential comes from and where it goes. It never holds the secret itself.
type Auth struct {
	Kind     AuthKind
	Name     string // header or query parameter
	Format   string // header value with ${secret}; default "${secret}"
	User     string // basic
	TokenURL string // oauth2 client credentials
	ClientID string
	Scopes   []string
	Secret   string // reference: env:NAME, ssm:/name, secretsmanager:id#field
}

// Tool is one operation of a provider's API.
type Tool struct {
	Name       string
	Provider   *Provider
	Method     string
	Path       *Template // string template with {x} and ${...}; values escaped as path segments
	Query      map[string]*Template
	Headers    map[string]*Template
	Body       *Template // nil: no body
	Input      []Param   // nil: anything goes
	Timeout    time.Duration
	MaxBody    int64 // bytes
	Idempotent bool
	Fence      string // header that carries the call's stable key
	Attempts   int    // physical attempts for retryable failures, at least 1
	Cache      time.Duration
	CostMicros int64 // millionths of the money unit, per answered success
	Missing    *Template
	Fail       *Template
	Result     *Template
	Batch      *Batch // nil: a request for each call
	Digest     string // hex; changes with anything that changes what a call means (not with limits, retries, cost)

	path path // Path, compiled into segments
}

// Repeatable reports whether a call that may have reached the provider may be sent again.
func (t *Tool) Repeatable() bool { return t.Idempotent || t.Fence != "" }

// Param is one declared input of a tool.
type Param struct {
	Name, Type string
	Optional   bool
}

// Env is what expressions see. In `finish`, the run is the only row. Values are nil, bool, int64, float64, string, []any and map[string]any.
type Env struct {
	Row, Cells, Vars map[string]any
	Index            int64
	// In tools and waterfall steps:
	Result  any
	Status  int64
	Headers map[string]any // lower-case names, first value
	Body    any
	Input   map[string]any
	Inputs  []any // of a batch, in order
	// In an event's notification: where and until when it can be answered (func Answer).
	Answer map[string]any
}
