package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Job is a run that is ready to be worked on: its record, and its map and tools compiled.
type Job struct {
	Run         *sheet.Run
	Map         *mapspec.Map
	Tools       *mapspec.Catalogue
	manifest    []intake.PageRef
	lastCall    int    // the last column that makes calls or waits; -1 if none does
	waits       bool   // rows may sleep or wait for answers
	awaits      bool   // rows may wait for answers
	unread      []bool // columns whose cells no later column reads
	personal    []bool // columns that keep of a call's result what depends on the row
	longestCall time.Duration
	since       table.Usage // of the store: what is used from here on has not been booked
	budget      mapspec.Budget
	ending      *ending // of the hidden run that makes the steps of `finish`; nil: any other
}

// Load reads a run that has been started.
func LoadJob(ctx context.Context, st *store.Store, id string) (*Job, error) {
	since := st.Used()
	r, err := sheet.Load(ctx, st, id)
	if err != nil {
		return nil, err
	}
	docs, err := r.Documents(ctx, st)
	if err != nil {
		return nil, err
	}
	m, tools, err := compile(docs, mapspec.AnyResolver()) // the run was started: its map has been checked
	if err != nil {
		return nil, err
	}
	j := newJob(r, m, tools)
	j.since = since
	if r.StartedAt.IsZero() { // its input is not sealed yet
		return j, nil
	}
	j.manifest, err = intake.Manifest(ctx, st, id, r.Sealed)
	return j, err
}

// Reload reads the record again, which somebody else may have changed.
func (j *Job) Reload(ctx context.Context, st *store.Store) error {
	r, err := sheet.Load(ctx, st, j.Run.ID)
	if err == nil {
		*j.Run = *r
	}
	return err
}

// compile parses the two files; every mistake in either is reported.
func compile(d sheet.Documents, options ...mapspec.Option) (*mapspec.Map, *mapspec.Catalogue, error) {
	var tools *mapspec.Catalogue
	var toolsErr error
	if d.Tools != nil {
		tools, toolsErr = mapspec.ParseTools(d.ToolsFile, d.Tools)
		if toolsErr != nil {
			return nil, nil, toolsErr
		}
	}
	m, err := mapspec.ParseMap(d.MapFile, d.Map, tools, options...)
	return m, tools, errors.Join(err)
}

func newJob(r *sheet.Run, m *mapspec.Map, tools *mapspec.Catalogue) *Job {
	j := &Job{Run: r, Map: m, Tools: tools, budget: m.Budget, lastCall: -1, unread: make([]bool, len(m.Columns)), personal: make([]bool, len(m.Columns))}
	for c := range m.Columns {
		j.unread[c] = !j.read(c)
		if col := &m.Columns[c]; col.Sleep != nil || col.Event != nil || col.Resolve != nil {
			j.lastCall, j.waits = c, true
			j.awaits = j.awaits || col.Sleep == nil
			j.personal[c] = true // what it calls is not what its cell is
		}
		for _, step := range m.Columns[c].Steps {
			j.lastCall = c
			j.personal[c] = j.personal[c] || personal(step.Accept) || personal(step.Result)
			j.longestCall = max(j.longestCall, step.Tool.Timeout)
		}
	}
	return j
}

// personal tells whether a template gives for the same call another value in another row: rows share the call then,
// but not what the column keeps of it.
func personal(t *mapspec.Template) bool {
	return t.Reads("row") || t.Reads("cells") || t.Reads("index")
}

// read tells whether a later column reads the cell of column c.
func (j *Job) read(c int) bool {
	name := j.Map.Columns[c].Name
	for later := c + 1; later < len(j.Map.Columns); later++ {
		for _, t := range j.Map.Columns[later].Templates() {
			names, all := t.Cells()
			if all {
				return true
			}
			for _, n := range names {
				if n == name {
					return true
				}
			}
		}
	}
	return false
}

// CalledTools are the tools that the run may call, by name, where these resolvers are known.
func (j *Job) CalledTools(known resolver.Set) map[string]*mapspec.Tool {
	tools := j.Map.Tools()
	maps.Copy(tools, j.resolverTools(known))
	return tools
}

// resolverTools are the tools that the map's resolvers may call.
func (j *Job) resolverTools(known resolver.Set) map[string]*mapspec.Tool {
	tools := map[string]*mapspec.Tool{}
	for c := range j.Map.Columns {
		col := &j.Map.Columns[c]
		if col.Resolve == nil || j.Tools == nil {
			continue
		}
		for _, name := range known[col.Resolve.Name].Tools {
			if tool := j.Tools.Tools[name]; tool != nil {
				tools[name] = tool
			}
		}
	}
	return tools
}

// sharesCalls reports whether the map makes calls that identical rows share.
func (j *Job) sharesCalls() bool {
	for c := range j.Map.Columns {
		for _, step := range j.Map.Columns[c].Steps {
			if step.Tool.Idempotent && !j.personal[c] {
				return true
			}
		}
	}
	return false
}

// usedProviders are the providers that calls go to, by name: those of the map, and those of its resolvers.
func (j *Job) usedProviders(known resolver.Set) map[string]*mapspec.Provider {
	used := map[string]*mapspec.Provider{}
	for _, tool := range j.resolverTools(known) {
		used[tool.Provider.Name] = tool.Provider
	}
	for c := range j.Map.Columns {
		for _, step := range j.Map.Columns[c].Steps {
			used[step.Tool.Provider.Name] = step.Tool.Provider
		}
	}
	return used
}

// shardPages is the range of pages of a shard: the pages are dealt out evenly, in order, and so are those of an extension,
// to shards of their own.
func (j *Job) shardPages(shard int) (first, end int) {
	if ends := j.Run.ShardEnds; len(ends) > 0 {
		if shard > 0 {
			first = ends[shard-1]
		}
		return first, ends[shard]
	}
	n := len(j.manifest)
	return n * shard / j.Run.Shards, n * (shard + 1) / j.Run.Shards
}

func (j *Job) firstRow(page int) int64 {
	if page >= len(j.manifest) {
		return j.Run.Sealed.Rows
	}
	return j.manifest[page].First
}

func (j *Job) endRow(endPage int) int64 { return j.firstRow(endPage) }

// ChangedError: the input of a held row is not what it was when the row was admitted.
type ChangedError struct {
	Page int
	Row  int64 // 0-based
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("row %d (page %d): its input has changed since it was admitted; the run cannot go on", e.Row+1, e.Page)
}

// RowError is the failure of a row that ends the run (onRowError: fail).
type RowError struct {
	Index int64 // 0-based
	Fault *sheet.Fault
}

func (e *RowError) Error() string { return fmt.Sprintf("row %d: %v", e.Index+1, e.Fault) }

func isRowError(err error) bool {
	var row *RowError
	return errors.As(err, &row)
}
