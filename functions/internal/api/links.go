package api

import (
	"context"
	"net/http"
	"time"

	"sluice/functions/internal/ending"
	"sluice/internal/api"
	"sluice/internal/core/export"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/objects"
	"sluice/internal/strict"
)

// Presigner signs requests to the bucket; objects.Bucket is one.
type Presigner interface {
	PresignPut(ctx context.Context, name string, size int64, expires time.Duration) (objects.Signed, error)
	PresignGet(ctx context.Context, name, filename string, expires time.Duration) (string, error)
}

// Links are signed URLs of the bucket: rows never travel through the function.
type Links struct{ Presigner }

// Upload implements api.Links.
func (l Links) Upload(ctx context.Context, name string, size int64, expires time.Duration) (api.Link, error) {
	signed, err := l.PresignPut(ctx, name, size, expires)
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

// Table implements api.Links. The table was written when the run ended, as CSV.
func (l Links) Table(ctx context.Context, r *sheet.Run, format string, expires time.Duration) (api.Link, error) {
	if format != export.CSV {
		return api.Link{}, strict.Errorf("`format` can only be csv here: that is what was written when the run ended")
	}
	signed, err := l.PresignGet(ctx, ending.Export(r.ID), r.ID+"."+format, expires)
	return api.Link{Method: http.MethodGet, URL: signed}, err
}
