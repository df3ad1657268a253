package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sluice/functions/internal/ending"
	"sluice/internal/api"
	"sluice/internal/core/blob"
	"sluice/internal/core/export"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/objects"
)

// Presigner signs requests to the bucket; objects.Bucket is one.
type Presigner interface {
	PresignPut(ctx context.Context, name string, of blob.Expected, expires time.Duration) (objects.Signed, error)
	PresignGet(ctx context.Context, name, filename string, expires time.Duration) (string, error)
}

// Links are signed URLs of the bucket: rows never travel through the function.
type Links struct {
	Presigner
	Store *store.Store
}

// Upload implements api.Links.
func (l Links) Upload(ctx context.Context, name string, of blob.Expected, expires time.Duration) (api.Link, error) {
	signed, err := l.PresignPut(ctx, name, of, expires)
	link := api.Link{Method: signed.Method, URL: signed.URL, Header: map[string]string{}}
	for name := range signed.Header {
		link.Header[name] = signed.Header.Get(name)
	}
	return link, err
}

// Published implements api.Links: the browser saves the object.
func (l Links) Published(ctx context.Context, id, name string, expires time.Duration) (api.Link, error) {
	signed, err := l.PresignGet(ctx, run.PublishedName(id, name), name, expires)
	return api.Link{Method: http.MethodGet, URL: signed}, err
}

// Table implements api.Links. That of a completed run was written, as CSV, when the run ended. Other tables are written when
// they are first asked for, which must be done while somebody waits.
func (l Links) Table(ctx context.Context, r *sheet.Run, format string, expires time.Duration) (api.Link, error) {
	name := ending.Export(r.ID)
	if format != export.CSV || r.Status == sheet.Cancelled {
		// What the run comes to when it goes on, or is run again, is another table.
		name = fmt.Sprintf("runs/%s/table-%d-%d.%s", r.ID, r.Execution(), cmp.Or(r.FinishedAt, r.WholeAt).UnixMilli(), format)
		if err := l.write(ctx, r.ID, name, format); err != nil {
			return api.Link{}, err
		}
	}
	signed, err := l.PresignGet(ctx, name, r.ID+"."+format, expires)
	return api.Link{Method: http.MethodGet, URL: signed}, err
}

// writing is how long a table may take: API Gateway gives up after 29 s.
const writing = 20 * time.Second

// write writes a table, unless it is there.
func (l Links) write(ctx context.Context, id, name, format string) error {
	object, err := l.Store.Blobs.Get(ctx, name)
	if err == nil {
		return object.Close()
	}
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	job, err := run.LoadJob(ctx, l.Store, id)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	r, w := io.Pipe()
	go func() { w.CloseWithError(job.Export(bounded, run.Ports{Store: l.Store}, w, format)) }()
	err = l.Store.Blobs.Put(bounded, name, r)
	r.CloseWithError(errors.Join(errors.New("the object was not written"), err))
	if bounded.Err() != nil && ctx.Err() == nil {
		return api.TableTooLarge(format)
	}
	return err
}
