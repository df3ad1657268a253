package start

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/strict"
)

// Extension asks for the rows that a run does not have to be added to it. Exactly one of Rows and Upload is given. The map, its
// tools and variables are those of the run: where they are given, they are held against them.
type Extension struct {
	Map       string            `json:"map,omitempty"`
	Tools     string            `json:"tools,omitempty"`
	MapName   string            `json:"mapName,omitempty"`
	ToolsName string            `json:"toolsName,omitempty"`
	Vars      map[string]string `json:"vars,omitempty"`
	Rows      []json.RawMessage `json:"rows,omitempty"`
	Upload    string            `json:"upload,omitempty"`
	Format    string            `json:"format,omitempty"`
	Encoding  string            `json:"encoding,omitempty"`
	Delimiter string            `json:"delimiter,omitempty"`
	Limit     int64             `json:"limit,omitempty"` // of the rows that are read
}

// of is the extension as if it were a start of the run.
func (e *Extension) of(id string) Request {
	return Request{Run: id, Map: e.Map, Tools: e.Tools, MapName: e.MapName, ToolsName: e.ToolsName, Vars: e.Vars, Rows: e.Rows, Upload: e.Upload,
		Format: e.Format, Encoding: e.Encoding, Delimiter: e.Delimiter, Limit: e.Limit}
}

// Extend notes that the run is to be extended; who works on it then begins with that, as soon as it hears of it. The key is that
// under which the same extension can be asked for again; empty: its source. Errors: *strict.Error; those of run.AskExtend;
// run.ErrOtherRun; with any other it is open whether it was noted, and asking again is right.
//
// The order: the rows, the list of active runs, the note. Whatever dies between two of them, the same request repeated completes
// it; and what was noted, the reaper finds by the list.
func (s *Starter) Extend(ctx context.Context, id, key string, req Extension) (*sheet.Run, error) {
	rec, err := sheet.Load(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	asks := req.of(id)
	if err := asks.checkInput(); err != nil {
		return nil, err
	}
	if req.Map == "" && (req.Tools != "" || req.MapName != "" || req.ToolsName != "" || req.Vars != nil) {
		return nil, bad("`tools`, `vars` and names are given with `map`; without it, those of the run are taken")
	}
	want, rows, err := asks.request()
	if err == nil && req.Map != "" {
		err = s.same(ctx, rec, want)
	}
	if err != nil {
		return nil, err
	}
	more := sheet.More{Input: want.InputName, Source: *want.Source, Limit: want.Format.Limit}
	if key == "" {
		b, err := json.Marshal(more)
		if err != nil {
			return nil, err
		}
		key = "source/" + string(b)
	}
	key = KeyID(key)
	if err := run.CanExtend(ctx, s.Store, id, key, more); err != nil {
		return nil, err
	}
	if rows != nil {
		if err := s.Store.Blobs.Put(ctx, more.Object, bytes.NewReader(rows)); err != nil {
			return nil, fmt.Errorf("rows of run %s: %w", id, err)
		}
	}
	if err := active.Add(ctx, s.Store.Table, id); err != nil {
		return nil, err
	}
	return run.AskExtend(ctx, s.Store, id, key, more)
}

// same refuses a map that is not the run's.
func (s *Starter) same(ctx context.Context, rec *sheet.Run, want run.Request) error {
	want.Resolvers = s.Resolvers
	prepared, err := run.Prepare(want)
	if err != nil {
		return strict.Wrap(err)
	}
	if err := s.Accept(ctx, prepared); err != nil {
		return err
	}
	return prepared.Continues(rec)
}
