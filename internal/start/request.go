// Package start begins runs for whoever does not work on them itself: the API, here and in the cloud, and events. It owns the request, its validation and the
// order of writes that makes a start that is repeated, or cut off anywhere, one run.
package start

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sluice/internal/core/blob"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/strict"
)

// Request asks for a run. Exactly one of Rows and Upload is given.
type Request struct {
	Run           string            `json:"run,omitempty"`       // the id, which is the idempotency key; empty: derived or new
	Map           string            `json:"map"`                 // the map file's text
	Tools         string            `json:"tools,omitempty"`     // the tool file's text
	MapName       string            `json:"mapName,omitempty"`   // for messages; default map.yaml
	ToolsName     string            `json:"toolsName,omitempty"` // for messages; default tools.yaml
	Vars          map[string]string `json:"vars,omitempty"`
	Rows          []json.RawMessage `json:"rows,omitempty"`   // objects
	Upload        string            `json:"upload,omitempty"` // key that POST /uploads gave
	Format        string            `json:"format,omitempty"` // of the upload: csv, jsonl or json; default by its name
	Encoding      string            `json:"encoding,omitempty"`
	Delimiter     string            `json:"delimiter,omitempty"`
	Limit         int64             `json:"limit,omitempty"`
	Concurrency   int               `json:"concurrency,omitempty"`
	Force         bool              `json:"force,omitempty"`
	StatusColumns bool              `json:"statusColumns,omitempty"`
}

// Uploads is the folder in the bucket that uploads go to; nothing else is ever read as an input by name.
const Uploads = "uploads/"

// sha256Folder begins the folder of a file whose digest was announced.
const sha256Folder = Uploads + "sha256-"

// UploadKey is where a file goes: the same file to the same place, where its digest is announced, and else to a place of its own.
func UploadKey(sha256Hex, own, name string) string {
	if sha256Hex != "" {
		return sha256Folder + sha256Hex + "/" + name
	}
	return Uploads + own + "/" + name
}

// announced is the digest that the file of a key must have; empty: it may have any.
func announced(key string) string {
	rest, ok := strings.CutPrefix(key, sha256Folder)
	if digest, _, found := strings.Cut(rest, "/"); ok && found {
		return digest
	}
	return ""
}

// Separator stands between a run's id and the number of the restart in the name of an execution. Ids of runs must not contain it.
const Separator = "--"

// maxID leaves room for the number of a restart in the 80 characters of an execution's name.
const maxID = 72

// maxConcurrency keeps a request from asking for more than a function has memory for.
const maxConcurrency = 1000

// KeyID is the id of the run that an idempotency key names.
func KeyID(key string) string {
	sum := sha256.Sum256([]byte("idempotency/" + key))
	return "k" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// check validates what does not need the map.
func (r *Request) check() error {
	if err := checkID(r.Run); err != nil {
		return err
	}
	switch {
	case r.Map == "":
		return bad("`map` is missing: it is the text of the map file")
	case r.Concurrency < 0 || r.Concurrency > maxConcurrency:
		return bad("`concurrency` is %d; it must be between 1 and %d", r.Concurrency, maxConcurrency)
	}
	return r.checkInput()
}

// checkInput validates where the rows are, and how they are read.
func (r *Request) checkInput() error {
	switch {
	case r.Limit < 0:
		return bad("`limit` is %d; it must be positive", r.Limit)
	case len(r.Delimiter) > 1:
		return bad("`delimiter` must be one character")
	case (r.Rows == nil) == (r.Upload == ""):
		return bad("give either `rows` or `upload`")
	case r.Rows != nil && (r.Format != "" || r.Encoding != "" || r.Delimiter != ""):
		return bad("`format`, `encoding` and `delimiter` are for uploads; rows are JSON")
	}
	if r.Upload == "" {
		return nil
	}
	if !strings.HasPrefix(r.Upload, Uploads) || blob.CheckName(r.Upload) != nil {
		return bad("`upload` must be a key that POST /uploads gave; such keys begin with %s", Uploads)
	}
	switch r.Format {
	case "", intake.CSV, intake.JSONL, intake.JSON:
		return nil
	}
	return bad("`format` is %q; it is csv, jsonl or json", r.Format)
}

func checkID(id string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	switch {
	case len(id) > maxID:
		return bad("`run` has %d characters; at most %d are possible", len(id), maxID)
	case strings.Trim(id, allowed) != "" || strings.Contains(id, Separator):
		return bad("`run` may have letters, digits, `-` and `_`, and no two `-` in a row")
	}
	return nil
}

func bad(format string, args ...any) error { return strict.Errorf(format, args...) }

// request is r in the terms of the engine, with the input's bytes where they are inline.
func (r *Request) request() (run.Request, []byte, error) {
	req := run.Request{
		ID: r.Run, Set: r.Vars, Concurrency: r.Concurrency, Force: r.Force, Statuses: r.StatusColumns,
		Documents: sheet.Documents{MapFile: named(r.MapName, "map.yaml"), Map: []byte(r.Map)},
		Format:    intake.Options{Limit: r.Limit},
	}
	if r.Tools != "" {
		req.Documents.ToolsFile, req.Documents.Tools = named(r.ToolsName, "tools.yaml"), []byte(r.Tools)
	}
	if r.Upload != "" {
		req.InputName = r.Upload[strings.LastIndexByte(r.Upload, '/')+1:]
		req.Source = &sheet.Source{Object: r.Upload, Format: r.Format, Encoding: r.Encoding, SHA256: announced(r.Upload)}
		if r.Delimiter != "" {
			req.Source.Delimiter = r.Delimiter[0]
		}
		req.Seal.Fingerprint = "object:" + r.Upload
		return req, nil, nil
	}
	lines, err := jsonl(r.Rows)
	if err != nil {
		return req, nil, err
	}
	sum := sha256.Sum256(lines)
	digest := hex.EncodeToString(sum[:])
	// Named by its content: a start with other rows under the same id cannot replace what the first one gave.
	req.InputName = "rows"
	req.Source = &sheet.Source{Object: "runs/" + r.Run + "/input-" + digest[:32] + ".jsonl", Format: intake.JSONL, SHA256: digest}
	req.Seal.Fingerprint = "sha256:" + digest
	return req, lines, nil
}

func named(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// jsonl writes the rows as one line each, their values as they were written.
func jsonl(rows []json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	for i, row := range rows {
		if len(row) == 0 || row[0] != '{' {
			return nil, bad("row %d is not an object", i+1)
		}
		if err := json.Compact(&b, row); err != nil {
			return nil, bad("row %d: %v", i+1, err)
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return nil, bad("`rows` is empty")
	}
	return b.Bytes(), nil
}
