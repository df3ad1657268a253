package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Cells are kept in their page, but for large ones: they go to the blob store, and the page holds a reference. That
// bounds what a page weighs in memory and what reading it back takes, whatever providers answer (M4).
const (
	largeCell = 32 << 10 // bytes of JSON
	pageHolds = 8 << 20  // bytes of cells; on a page that holds more, smaller cells count as large too
	smallCell = 256
)

// refPrefix begins a reference. A cell that begins like one is itself kept by reference, so that nothing that a
// provider answers is ever taken for one.
const refPrefix = `{"$ref":`

type reference struct {
	Ref string `json:"$ref"` // SHA-256 of the cell's JSON
	Len int    `json:"n"`
}

// cellName is a path; the id of a hidden run is one, too.
func cellName(run, digest string) string {
	return "cells/" + strings.ReplaceAll(run, "~", "/") + "/" + digest
}

// stow replaces the large cells of an entry by references to blobs that are durable by then.
func (p *pages) stow(ctx context.Context, page *openPage, e *sheet.Entry) error {
	var err error
	if e.Value != nil {
		if e.Value, err = p.stowCell(ctx, page, e.Value); err != nil {
			return err
		}
	}
	for c, cell := range e.Cells {
		if cell == nil {
			continue
		}
		if e.Cells[c], err = p.stowCell(ctx, page, cell); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) stowCell(ctx context.Context, page *openPage, raw json.RawMessage) (json.RawMessage, error) {
	large := len(raw) > largeCell || len(raw) > smallCell && page.weight.Load()+int64(len(raw)) > pageHolds
	if p.st.Blobs == nil || !large && !isReference(raw) {
		page.weight.Add(int64(len(raw)))
		return raw, nil
	}
	sum := sha256.Sum256(raw)
	ref := reference{Ref: hex.EncodeToString(sum[:]), Len: len(raw)}
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), durableWrite)
	defer cancel()
	if err := p.st.Blobs.Put(durable, cellName(p.job.Run.ID, ref.Ref), bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("%w: a large cell: %w", sheet.ErrJournal, err)
	}
	return json.Marshal(ref)
}

func isReference(raw json.RawMessage) bool { return bytes.HasPrefix(raw, []byte(refPrefix)) }

// cell returns the JSON of a stored cell, fetched if it is a reference, and checked against its digest.
func (j *Job) cell(ctx context.Context, st *store.Store, raw json.RawMessage) (json.RawMessage, error) {
	return loadCell(ctx, st, j.Run.ID, raw)
}

func loadCell(ctx context.Context, st *store.Store, run string, raw json.RawMessage) (json.RawMessage, error) {
	if !isReference(raw) {
		return raw, nil
	}
	var ref reference
	if err := json.Unmarshal(raw, &ref); err != nil || st.Blobs == nil {
		return nil, fmt.Errorf("%w: a reference to a large cell cannot be followed", store.ErrDamaged)
	}
	r, err := st.Blobs.Get(ctx, cellName(run, ref.Ref))
	if err != nil {
		return nil, fmt.Errorf("large cell: %w", err)
	}
	defer r.Close()
	got, err := io.ReadAll(io.LimitReader(r, int64(ref.Len)+1))
	if err != nil {
		return nil, fmt.Errorf("large cell: %w", err)
	}
	if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != ref.Ref {
		return nil, fmt.Errorf("%w: a large cell differs from what was saved", store.ErrDamaged)
	}
	return got, nil
}
